grant select on meta, evaluations, metrics, query_values, history, ledger to nornweave_reader;

-- Whoever serves remembers its answers, stores what users say of them, and forgets the rest in time.
grant select, insert, update, delete on shown, feedback to nornweave_reader;
