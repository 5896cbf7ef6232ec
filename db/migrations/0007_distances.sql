-- Schema 7. Distances between hosts as their agents measured them: latency and bandwidth with their
-- spread. No released daemon wrote to latency, which knew ports and no bandwidth.

DROP TABLE latency;
-- One row for each pair of hosts, whose names are in order.
CREATE TABLE distance (
  host_a TEXT NOT NULL CHECK (host_a <> ''),
  host_b TEXT NOT NULL CHECK (host_b > host_a),
  latency_us REAL NOT NULL CHECK (latency_us > 0),
  latency_spread_us REAL NOT NULL CHECK (latency_spread_us >= 0),
  bandwidth_gbps REAL NOT NULL CHECK (bandwidth_gbps > 0),
  bandwidth_spread_gbps REAL NOT NULL CHECK (bandwidth_spread_gbps >= 0),
  samples INTEGER NOT NULL CHECK (samples > 0),
  measured_ns INTEGER NOT NULL,
  PRIMARY KEY (host_a, host_b)
) STRICT, WITHOUT ROWID;

-- For people.

CREATE VIEW distance_list AS
  SELECT host_a, host_b, round(latency_us, 3) AS latency_us,
         round(latency_spread_us, 3) AS latency_spread_us,
         round(bandwidth_gbps, 3) AS bandwidth_gbps,
         round(bandwidth_spread_gbps, 3) AS bandwidth_spread_gbps, samples,
         datetime(measured_ns / 1000000000, 'unixepoch') AS measured
  FROM distance;
