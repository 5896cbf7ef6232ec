-- Schema 1. Every table and column is described in db/README.md. GUIDs and other 64-bit numbers are
-- the same 64 bits read as a signed integer (the views print them as everyone writes them); *_ns are
-- nanoseconds since 1970 UTC, or a duration.

CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting VALUES ('fabric_version', 0), ('tree_id_floor', 0);

-- Inventory: what the sweeps saw, also what has gone since.

CREATE TABLE node (
  guid INTEGER PRIMARY KEY,
  kind TEXT NOT NULL CHECK (kind IN ('switch', 'adapter', 'router')),
  description TEXT NOT NULL,
  host TEXT NOT NULL,
  vendor_id INTEGER NOT NULL,
  device_id INTEGER NOT NULL,
  port_count INTEGER NOT NULL CHECK (port_count BETWEEN 0 AND 255),
  first_seen_ns INTEGER NOT NULL,
  last_seen_ns INTEGER NOT NULL
) STRICT;

CREATE TABLE port (
  node_guid INTEGER NOT NULL REFERENCES node (guid),
  port INTEGER NOT NULL CHECK (port BETWEEN 0 AND 255),
  port_guid INTEGER NOT NULL,
  lid INTEGER NOT NULL CHECK (lid BETWEEN 0 AND 65535),
  first_seen_ns INTEGER NOT NULL,
  last_seen_ns INTEGER NOT NULL,
  PRIMARY KEY (node_guid, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE link (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  node_a INTEGER NOT NULL REFERENCES node (guid),
  port_a INTEGER NOT NULL CHECK (port_a BETWEEN 0 AND 255),
  node_b INTEGER NOT NULL REFERENCES node (guid),
  port_b INTEGER NOT NULL CHECK (port_b BETWEEN 0 AND 255),
  rate TEXT NOT NULL,
  capacity_gbps REAL NOT NULL,
  first_seen_ns INTEGER NOT NULL,
  last_seen_ns INTEGER NOT NULL,
  UNIQUE (node_a, port_a, node_b, port_b)
) STRICT;

-- Measurements.

CREATE TABLE port_counter (
  node_guid INTEGER NOT NULL,
  port INTEGER NOT NULL,
  sent_bytes INTEGER NOT NULL,
  received_bytes INTEGER NOT NULL,
  sent_packets INTEGER NOT NULL,
  received_packets INTEGER NOT NULL,
  sent_wait_ticks INTEGER NOT NULL,
  symbol_errors INTEGER NOT NULL,
  receive_errors INTEGER NOT NULL,
  discards INTEGER NOT NULL,
  link_downed INTEGER NOT NULL,
  read_ns INTEGER NOT NULL,
  PRIMARY KEY (node_guid, port),
  FOREIGN KEY (node_guid, port) REFERENCES port (node_guid, port)
) STRICT, WITHOUT ROWID;

CREATE TABLE link_load (
  link_id INTEGER NOT NULL REFERENCES link (id),
  direction TEXT NOT NULL CHECK (direction IN ('a-to-b', 'b-to-a')),
  average REAL NOT NULL CHECK (average >= 0),
  peak REAL NOT NULL CHECK (peak >= 0),
  peak_ns INTEGER NOT NULL,
  updated_ns INTEGER NOT NULL,
  PRIMARY KEY (link_id, direction)
) STRICT, WITHOUT ROWID;

CREATE TABLE latency (
  port_guid_a INTEGER NOT NULL,
  port_guid_b INTEGER NOT NULL,
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  latency_us REAL NOT NULL CHECK (latency_us >= 0),
  samples INTEGER NOT NULL CHECK (samples > 0),
  measured_ns INTEGER NOT NULL,
  PRIMARY KEY (port_guid_a, port_guid_b, bytes)
) STRICT, WITHOUT ROWID;

-- Jobs and placements.

CREATE TABLE job (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
  request_id TEXT,
  request_fingerprint INTEGER NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  endpoints TEXT NOT NULL,
  lease_ns INTEGER NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'ended', 'expired')),
  created_ns INTEGER NOT NULL,
  ended_ns INTEGER,
  CHECK ((state = 'active') = (ended_ns IS NULL))
) STRICT;
CREATE UNIQUE INDEX job_by_request ON job (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX job_by_activity ON job (id) WHERE state = 'active';

CREATE TABLE placement (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
  request_id TEXT,
  request_fingerprint INTEGER NOT NULL,
  owner TEXT NOT NULL,
  nodes TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('held', 'released', 'expired')),
  reason TEXT NOT NULL,
  created_ns INTEGER NOT NULL,
  expires_ns INTEGER
) STRICT;
CREATE UNIQUE INDEX placement_by_request ON placement (request_id) WHERE request_id IS NOT NULL;

-- Trees, and the switch entries that they take.

CREATE TABLE switch_capability (
  guid INTEGER PRIMARY KEY,
  entries_total INTEGER NOT NULL CHECK (entries_total >= 0),
  entries_reserved INTEGER NOT NULL CHECK (entries_reserved >= 0),
  degree_limit INTEGER NOT NULL CHECK (degree_limit >= 0),
  entries_grantable INTEGER GENERATED ALWAYS AS (max(entries_total - entries_reserved, 0)) VIRTUAL
) STRICT;

CREATE TABLE tree (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
  job_id INTEGER NOT NULL,
  request_id TEXT,
  request_fingerprint INTEGER NOT NULL,
  fabric_version INTEGER NOT NULL,
  revision INTEGER NOT NULL,
  type INTEGER NOT NULL CHECK (type IN (1, 2)),
  builder TEXT NOT NULL,
  width INTEGER NOT NULL,
  height INTEGER NOT NULL,
  radius INTEGER NOT NULL,
  operation TEXT NOT NULL,
  sizes TEXT NOT NULL,
  aggregate_us REAL NOT NULL,
  distribute_us REAL NOT NULL,
  total_us REAL NOT NULL,
  reason TEXT NOT NULL,
  alternatives TEXT NOT NULL,
  created_ns INTEGER NOT NULL,
  nodes TEXT NOT NULL,
  links TEXT NOT NULL,
  physical TEXT NOT NULL,
  FOREIGN KEY (job_id) REFERENCES job (id) DEFERRABLE INITIALLY DEFERRED
) STRICT;
-- Also finds the trees of a job; request ids that are NULL are all different to a unique index.
CREATE UNIQUE INDEX tree_by_job ON tree (job_id, request_id);

CREATE TABLE tree_switch (
  tree_id INTEGER NOT NULL,
  node INTEGER NOT NULL,
  guid INTEGER NOT NULL,
  children INTEGER NOT NULL,
  PRIMARY KEY (tree_id, node),
  UNIQUE (guid, tree_id)
) STRICT, WITHOUT ROWID;

-- Rules. What a switch's trees take is never stored: it is the count of its rows in tree_switch, so
-- it cannot differ from them. RAISE(FAIL) rather than ABORT saves a statement journal per row; the
-- store wraps each mutation in a savepoint, and a failing row is never written in either case.
-- REPLACE removes the row in its way without asking a DELETE trigger; so the INSERT triggers ask.

CREATE TRIGGER tree_switch_admit BEFORE INSERT ON tree_switch BEGIN
  SELECT RAISE(FAIL, 'the switch has no aggregation entry left')
    WHERE (SELECT count(*) FROM tree_switch WHERE guid = NEW.guid) >=
          ifnull((SELECT entries_grantable FROM switch_capability WHERE guid = NEW.guid), 0);
  SELECT RAISE(FAIL, 'the tree does not exist')
    WHERE NOT EXISTS (SELECT 1 FROM tree WHERE id = NEW.tree_id);
END;
CREATE TRIGGER tree_switch_fixed BEFORE UPDATE ON tree_switch BEGIN
  SELECT RAISE(FAIL, 'the switches of a granted tree do not change');
END;
CREATE TRIGGER tree_switch_keep BEFORE DELETE ON tree_switch BEGIN
  SELECT RAISE(FAIL, 'the tree is still granted: delete the tree')
    WHERE EXISTS (SELECT 1 FROM tree WHERE id = OLD.tree_id);
END;

CREATE TRIGGER tree_admit BEFORE INSERT ON tree BEGIN
  SELECT RAISE(FAIL, 'the tree exists')
    WHERE EXISTS (SELECT 1 FROM tree WHERE id = NEW.id)
       OR EXISTS (SELECT 1 FROM tree WHERE job_id = NEW.job_id AND request_id = NEW.request_id);
  SELECT RAISE(FAIL, 'the job of the tree is not active')
    WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = NEW.job_id AND state = 'active');
  SELECT RAISE(FAIL, 'the tree id belongs to an earlier run')
    WHERE NEW.id <= (SELECT value FROM setting WHERE name = 'tree_id_floor');
END;
CREATE TRIGGER tree_fixed BEFORE UPDATE OF id, job_id, request_id ON tree BEGIN
  SELECT RAISE(FAIL, 'a tree keeps its id, its job and its request id');
END;
CREATE TRIGGER tree_release AFTER DELETE ON tree BEGIN
  DELETE FROM tree_switch WHERE tree_id = OLD.id;
END;

CREATE TRIGGER job_admit BEFORE INSERT ON job BEGIN
  SELECT RAISE(FAIL, 'the job exists')
    WHERE EXISTS (SELECT 1 FROM job WHERE id = NEW.id)
       OR EXISTS (SELECT 1 FROM job WHERE request_id = NEW.request_id);
END;
CREATE TRIGGER job_fixed BEFORE UPDATE OF id, request_id ON job BEGIN
  SELECT RAISE(FAIL, 'a job keeps its id and its request id');
END;
CREATE TRIGGER job_end BEFORE UPDATE OF state ON job WHEN OLD.state <> NEW.state BEGIN
  SELECT RAISE(FAIL, 'a job that has ended stays ended') WHERE OLD.state <> 'active';
  SELECT RAISE(FAIL, 'the job still has trees: delete them first')
    WHERE EXISTS (SELECT 1 FROM tree WHERE job_id = OLD.id);
END;
CREATE TRIGGER job_keep BEFORE DELETE ON job BEGIN
  SELECT RAISE(FAIL, 'the job still has trees: delete them first')
    WHERE EXISTS (SELECT 1 FROM tree WHERE job_id = OLD.id);
END;

CREATE TRIGGER switch_capability_admit BEFORE INSERT ON switch_capability BEGIN
  SELECT RAISE(FAIL, 'granted trees take more entries than that')
    WHERE (SELECT count(*) FROM tree_switch WHERE guid = NEW.guid) >
          max(NEW.entries_total - NEW.entries_reserved, 0);
END;
CREATE TRIGGER switch_capability_shrink BEFORE UPDATE ON switch_capability BEGIN
  SELECT RAISE(FAIL, 'a switch keeps its GUID') WHERE NEW.guid <> OLD.guid;
  SELECT RAISE(FAIL, 'granted trees take more entries than that')
    WHERE (SELECT count(*) FROM tree_switch WHERE guid = OLD.guid) >
          max(NEW.entries_total - NEW.entries_reserved, 0);
END;
CREATE TRIGGER switch_capability_keep BEFORE DELETE ON switch_capability BEGIN
  SELECT RAISE(FAIL, 'granted trees take entries of the switch')
    WHERE EXISTS (SELECT 1 FROM tree_switch WHERE guid = OLD.guid);
END;

CREATE TABLE event (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
  time_ns INTEGER NOT NULL,
  severity TEXT NOT NULL CHECK (severity IN ('info', 'warning', 'error')),
  kind TEXT NOT NULL,
  object TEXT NOT NULL,
  message TEXT NOT NULL
) STRICT;

-- For people.

CREATE VIEW entries AS
  SELECT guid_hex AS switch, ifnull(description, '') AS description, entries_total,
         entries_reserved, entries_taken, entries_grantable - entries_taken AS entries_free,
         degree_limit
  FROM (SELECT c.*, printf('%016x', c.guid) AS guid_hex, n.description,
               (SELECT count(*) FROM tree_switch s WHERE s.guid = c.guid) AS entries_taken
        FROM switch_capability c LEFT JOIN node n ON n.guid = c.guid);

CREATE VIEW lease AS
  SELECT id AS job_id, owner, lease_ns / 1e9 AS term_seconds,
         datetime(created_ns / 1000000000, 'unixepoch') AS since
  FROM job WHERE state = 'active';

CREATE VIEW job_endpoint AS
  SELECT job.id AS job_id, e.key AS rank, e.value AS port_guid
  FROM job, json_each(job.endpoints) e;

CREATE VIEW tree_node AS
  SELECT t.id AS tree_id, n.key AS node,
         CASE WHEN s.guid IS NULL THEN 'rank:' || (n.value ->> 0)
              ELSE 'switch:' || printf('%016x', s.guid) END AS name,
         nullif(n.value ->> 1, -1) AS parent, n.value ->> 2 AS links_up, n.value ->> 3 AS links_down,
         s.children
  FROM tree t, json_each(t.nodes) n
  LEFT JOIN tree_switch s ON s.tree_id = t.id AND s.node = n.key;

CREATE VIEW tree_link AS
  SELECT t.id AS tree_id, l.value AS link_id FROM tree t, json_each(t.links) l;

CREATE VIEW link_list AS
  SELECT id, printf('%016x', node_a) AS node_a, port_a, printf('%016x', node_b) AS node_b, port_b,
         rate, capacity_gbps, datetime(first_seen_ns / 1000000000, 'unixepoch') AS first_seen,
         datetime(last_seen_ns / 1000000000, 'unixepoch') AS last_seen
  FROM link;

CREATE VIEW node_list AS
  SELECT printf('%016x', guid) AS guid, kind, description, host, port_count,
         datetime(first_seen_ns / 1000000000, 'unixepoch') AS first_seen,
         datetime(last_seen_ns / 1000000000, 'unixepoch') AS last_seen
  FROM node;

CREATE VIEW event_list AS
  SELECT id, datetime(time_ns / 1000000000, 'unixepoch') AS time, severity, kind, object, message
  FROM event;
