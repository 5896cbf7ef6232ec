-- Schema 16. How soon collectives went in each way, as earlier runs of an application measured it: what the next run
-- of it on ranks that lie alike starts with.

CREATE TABLE way_time (
  owner TEXT NOT NULL,
  application TEXT NOT NULL,
  layout TEXT NOT NULL,           -- "32 ranks: 8 hosts, 2 leaf switches"
  tree_type INTEGER NOT NULL CHECK (tree_type IN (1, 2)),
  operation TEXT NOT NULL CHECK (operation IN ('barrier', 'bcast', 'reduce', 'allreduce')),
  length_bits INTEGER NOT NULL CHECK (length_bits BETWEEN 0 AND 64),
  way TEXT NOT NULL CHECK (way IN ('native', 'tree', 'chain', 'binomial', 'exchange', 'forest')),
  us REAL NOT NULL CHECK (us > 0),
  spread REAL NOT NULL CHECK (spread >= 0),
  runs INTEGER NOT NULL CHECK (runs > 0),      -- jobs
  last_job INTEGER NOT NULL,                   -- that measured it
  measured_ns INTEGER NOT NULL,
  PRIMARY KEY (owner, application, layout, tree_type, operation, length_bits, way)
) STRICT, WITHOUT ROWID;

CREATE VIEW way_time_list AS
  SELECT owner, application, layout, tree_type, operation,
         CASE length_bits WHEN 0 THEN 0 WHEN 64 THEN 9223372036854775808.0
                          ELSE 1 << (length_bits - 1) END AS bytes_from,
         way, round(us, 1) AS us, round(100 * spread, 1) AS spread_percent, runs,
         datetime(measured_ns / 1000000000, 'unixepoch') AS measured
  FROM way_time;
