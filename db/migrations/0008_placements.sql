-- Schema 8. Placements: nodes that are held for a job to come, by the names of hosts. No released
-- daemon wrote to the table that was there, which knew nodes by GUID and no jobs.

DROP TABLE placement;

CREATE TABLE placement (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id > 0),
  request_id TEXT,
  request_fingerprint INTEGER NOT NULL,
  name TEXT NOT NULL,
  owner TEXT NOT NULL,
  nodes TEXT NOT NULL,
  ranks_per_node INTEGER NOT NULL CHECK (ranks_per_node > 0),
  permutation TEXT NOT NULL,
  is_exclusive INTEGER NOT NULL CHECK (is_exclusive IN (0, 1)),
  term_ns INTEGER NOT NULL,
  fabric_version INTEGER NOT NULL,
  reason TEXT NOT NULL,
  measures TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('held', 'started', 'released', 'expired')),
  job_id INTEGER,
  created_ns INTEGER NOT NULL,
  ended_ns INTEGER,
  CHECK ((state = 'held') = (ended_ns IS NULL)),
  CHECK ((state = 'started') = (job_id IS NOT NULL))
) STRICT;
CREATE UNIQUE INDEX placement_by_request ON placement (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX placement_by_holding ON placement (id) WHERE state = 'held';
CREATE INDEX placement_by_end ON placement (ended_ns) WHERE ended_ns IS NOT NULL;
CREATE INDEX placement_by_job ON placement (job_id) WHERE state = 'started' AND is_exclusive = 1;

-- One row for each node of a held placement: whoever writes, no node has two holders.
CREATE TABLE placement_node (
  node TEXT PRIMARY KEY CHECK (node <> ''),
  placement_id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX placement_node_by_placement ON placement_node (placement_id);

CREATE TRIGGER placement_that_is_over_frees_nodes AFTER UPDATE OF state ON placement
  WHEN NEW.state <> 'held' BEGIN
  DELETE FROM placement_node WHERE placement_id = NEW.id;
END;
CREATE TRIGGER placement_takes_its_nodes AFTER DELETE ON placement BEGIN
  DELETE FROM placement_node WHERE placement_id = OLD.id;
END;

-- For people.

CREATE VIEW placement_list AS
  SELECT id, name, owner, state, json_array_length(nodes) AS node_count, job_id,
         term_ns / 1000000000.0 AS term_seconds,
         datetime(created_ns / 1000000000, 'unixepoch') AS created,
         datetime(ended_ns / 1000000000, 'unixepoch') AS ended, reason
  FROM placement;
