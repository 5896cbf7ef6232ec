-- Schema 4. Counters with all that a port counts, the history of what ports moved, and indexes that
-- keep filtered lists of events quick. No released daemon wrote to port_counter.

DROP TABLE port_counter;
-- A port keeps its number for ever: the rows of history name it by that, so that a row is small.
-- Ports of switches are in `port` only as far as they have GUIDs: hence no reference.
CREATE TABLE port_counter (
  id INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 16777215),
  node_guid INTEGER NOT NULL,
  port INTEGER NOT NULL CHECK (port BETWEEN 0 AND 255),
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  sent_packets INTEGER NOT NULL,
  received_packets INTEGER NOT NULL,
  sent_wait_ticks INTEGER NOT NULL,
  symbol_errors INTEGER NOT NULL,
  link_recoveries INTEGER NOT NULL,
  link_downed INTEGER NOT NULL,
  receive_errors INTEGER NOT NULL,
  remote_physical_errors INTEGER NOT NULL,
  relay_errors INTEGER NOT NULL,
  send_discards INTEGER NOT NULL,
  send_constraint_errors INTEGER NOT NULL,
  receive_constraint_errors INTEGER NOT NULL,
  integrity_errors INTEGER NOT NULL,
  buffer_overruns INTEGER NOT NULL,
  vl15_dropped INTEGER NOT NULL,
  is_extended INTEGER NOT NULL CHECK (is_extended IN (0, 1)),
  sent_bytes_per_second REAL NOT NULL,
  received_bytes_per_second REAL NOT NULL,
  read_ns INTEGER NOT NULL,
  UNIQUE (node_guid, port)
) STRICT;

-- resolution: 1 reading, 2 minute, 3 hour. Slots are numbered as they are measured; the wall clock
-- only labels them.
CREATE TABLE history_slot (
  resolution INTEGER NOT NULL CHECK (resolution BETWEEN 1 AND 3),
  slot INTEGER NOT NULL CHECK (slot BETWEEN 1 AND 549755813887),
  start_ns INTEGER NOT NULL,
  length_ns INTEGER NOT NULL,
  PRIMARY KEY (resolution, slot)
) STRICT, WITHOUT ROWID;

-- One row for each port and slot in which something moved or nothing could be measured. id is
-- slot * 2^24 + port_counter.id: rows come in its order, are appended and never moved. Peaks are
-- NULL where they are the means.
CREATE TABLE reading_history (
  id INTEGER PRIMARY KEY,
  length_ms INTEGER NOT NULL,
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  peak_sent_per_second INTEGER,
  peak_received_per_second INTEGER,
  errors INTEGER NOT NULL
) STRICT;
CREATE TABLE minute_history (
  id INTEGER PRIMARY KEY,
  length_ms INTEGER NOT NULL,
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  peak_sent_per_second INTEGER,
  peak_received_per_second INTEGER,
  errors INTEGER NOT NULL
) STRICT;
CREATE TABLE hour_history (
  id INTEGER PRIMARY KEY,
  length_ms INTEGER NOT NULL,
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  peak_sent_per_second INTEGER,
  peak_received_per_second INTEGER,
  errors INTEGER NOT NULL
) STRICT;

-- Each also holds the event's id and gives its events in that order.
CREATE INDEX event_by_object ON event (object);
CREATE INDEX event_by_kind ON event (kind);
CREATE INDEX event_by_time ON event (time_ns);
CREATE INDEX event_of_concern ON event (id) WHERE severity <> 'info';

-- For people.

CREATE VIEW port_counters AS
  SELECT printf('%016x', c.node_guid) AS node, ifnull(n.description, '') AS description, c.port,
         c.sent_bytes, c.received_bytes, c.sent_packets, c.received_packets, c.sent_wait_ticks,
         c.symbol_errors, c.link_recoveries, c.link_downed, c.receive_errors,
         c.remote_physical_errors, c.relay_errors, c.send_discards, c.send_constraint_errors,
         c.receive_constraint_errors, c.integrity_errors, c.buffer_overruns, c.vl15_dropped,
         c.sent_bytes_per_second, c.received_bytes_per_second,
         datetime(c.read_ns / 1000000000, 'unixepoch') AS read
  FROM port_counter c LEFT JOIN node n ON n.guid = c.node_guid;

CREATE VIEW link_utilisation AS
  SELECT l.id AS link_id, o.direction,
         CASE o.direction WHEN 'a-to-b' THEN ifnull(a.description, '')
                          ELSE ifnull(b.description, '') END AS sender,
         CASE o.direction WHEN 'a-to-b' THEN l.port_a ELSE l.port_b END AS port,
         CASE o.direction WHEN 'a-to-b' THEN ifnull(b.description, '')
                          ELSE ifnull(a.description, '') END AS receiver,
         l.capacity_gbps, round(o.average, 4) AS average, round(o.peak, 4) AS peak,
         datetime(o.peak_ns / 1000000000, 'unixepoch') AS peaked,
         datetime(o.updated_ns / 1000000000, 'unixepoch') AS updated
  FROM link_load o JOIN link l ON l.id = o.link_id
  LEFT JOIN node a ON a.guid = l.node_a LEFT JOIN node b ON b.guid = l.node_b;

CREATE VIEW load_history AS
  WITH row (resolution, id, length_ms, sent_bytes, received_bytes, peak_sent, peak_received,
            errors) AS (
    SELECT 1, * FROM reading_history UNION ALL
    SELECT 2, * FROM minute_history UNION ALL
    SELECT 3, * FROM hour_history)
  SELECT CASE r.resolution WHEN 1 THEN 'reading' WHEN 2 THEN 'minute' ELSE 'hour' END AS resolution,
         datetime(s.start_ns / 1000000000, 'unixepoch') AS start, r.length_ms / 1e3 AS seconds,
         printf('%016x', c.node_guid) AS node, c.port, r.sent_bytes, r.received_bytes,
         ifnull(r.peak_sent, r.sent_bytes * 1000 / max(r.length_ms, 1)) AS peak_sent_per_second,
         ifnull(r.peak_received, r.received_bytes * 1000 / max(r.length_ms, 1))
             AS peak_received_per_second,
         r.errors
  FROM row r
  JOIN history_slot s ON s.resolution = r.resolution AND s.slot = r.id >> 24
  JOIN port_counter c ON c.id = r.id & 16777215;
