-- What belongs to no single domain, and is shared by all machines: the history of evaluations, the ledger.
create table if not exists meta (key text collate "C" primary key, value text not null);

create table if not exists evaluations (
  evaluation_id text collate "C" primary key,
  run_id text not null,
  "at" timestamptz not null,
  domain text collate "C" not null,
  "set" text collate "C" not null,
  origin text not null,
  scope text collate "C" not null,
  generation text collate "C" not null,
  verdict text not null,
  "commit" text not null,
  plan text not null,
  queries integer not null,
  measured integer not null,
  missing integer not null,
  failed integer not null,
  p50_ms double precision,
  p95_ms double precision
);

-- Means over all queries: kept for ever. `place` keeps the order of the query path.
create table if not exists metrics (
  evaluation_id text collate "C" not null,
  place integer not null,
  stage text not null,
  measure text not null,
  mean double precision not null,
  low double precision not null,
  high double precision not null
);

create index if not exists metrics_evaluation on metrics (evaluation_id);

-- Of each query: kept for the newest evaluations of a set.
create table if not exists query_values (
  evaluation_id text collate "C" not null,
  stage text not null,
  query text not null,
  digest text not null,
  measure text not null,
  "value" double precision not null
);

create index if not exists query_values_evaluation on query_values (evaluation_id);

-- What one asks of a history: one row a value.
create or replace view history as
select "at", domain, generation, verdict, "commit", plan, "set", scope, stage, query, measure, "value"
from query_values
join evaluations using (evaluation_id);

create table if not exists ledger (
  one boolean primary key default true check (one),
  version bigint not null,
  document text not null
);
