-- The history of evaluations: small, written by whoever evaluates, read by the API and the command line.
create table if not exists evaluations (
  evaluation_id varchar primary key,
  run_id varchar not null,
  "at" timestamptz not null,
  domain varchar not null,
  "set" varchar not null,
  origin varchar not null,
  scope varchar not null,
  generation varchar not null,
  verdict varchar not null,
  "commit" varchar not null,
  plan varchar not null,
  queries integer not null,
  measured integer not null,
  missing integer not null,
  failed integer not null,
  p50_ms double,
  p95_ms double
);

-- Means over all queries: kept for ever. `place` keeps the order of the query path.
create table if not exists metrics (
  evaluation_id varchar not null,
  place integer not null,
  stage varchar not null,
  measure varchar not null,
  mean double not null,
  low double not null,
  high double not null
);

-- Of each query: kept for the newest evaluations of a set.
create table if not exists query_values (
  evaluation_id varchar not null,
  stage varchar not null,
  query varchar not null,
  digest varchar not null,
  measure varchar not null,
  "value" double not null
);

-- What one asks of a history: one row a value.
create or replace view history as
select
  "at",
  domain,
  generation,
  verdict,
  "commit",
  plan,
  "set",
  scope,
  stage,
  query,
  measure,
  "value"
from query_values
join evaluations using (evaluation_id);
