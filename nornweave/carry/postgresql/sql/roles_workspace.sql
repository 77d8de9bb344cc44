grant select on meta, evaluations, metrics, query_values, history, ledger to nornweave_reader;

-- Until 2026-11 feedback was here; it is a file of the machine that answers.
drop table if exists feedback, shown;
