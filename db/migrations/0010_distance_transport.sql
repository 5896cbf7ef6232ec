-- Schema 10. What a distance was measured over. Daemons before knew TCP only.

ALTER TABLE distance
  ADD COLUMN transport TEXT NOT NULL DEFAULT 'tcp' CHECK (transport IN ('tcp', 'verbs'));

-- For people.

DROP VIEW distance_list;
CREATE VIEW distance_list AS
  SELECT host_a, host_b, transport, round(latency_us, 3) AS latency_us,
         round(latency_spread_us, 3) AS latency_spread_us,
         round(bandwidth_gbps, 3) AS bandwidth_gbps,
         round(bandwidth_spread_gbps, 3) AS bandwidth_spread_gbps, samples,
         datetime(measured_ns / 1000000000, 'unixepoch') AS measured
  FROM distance;
