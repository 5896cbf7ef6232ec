-- Schema 11. Who holds what: names of requests and patterns are their owners', quotas, and the
-- account of deeds.

ALTER TABLE job ADD COLUMN by_administrator INTEGER NOT NULL DEFAULT 0
  CHECK (by_administrator IN (0, 1));
ALTER TABLE job ADD COLUMN placed_nodes INTEGER NOT NULL DEFAULT 0 CHECK (placed_nodes >= 0);
ALTER TABLE job ADD COLUMN dropped_ranks INTEGER NOT NULL DEFAULT 0 CHECK (dropped_ranks >= 0);
-- Of the list of endpoints: 0 if it has none, or has them no more.
ALTER TABLE job ADD COLUMN kept_bytes INTEGER NOT NULL DEFAULT 0 CHECK (kept_bytes >= 0);
UPDATE job SET kept_bytes = length(endpoints) WHERE endpoints <> '[]';
CREATE INDEX job_by_kept_ranks ON job (owner, ended_ns, kept_bytes)
  WHERE ended_ns IS NOT NULL AND kept_bytes > 0;

DROP INDEX job_by_request;
CREATE UNIQUE INDEX job_by_request ON job (owner, request_id) WHERE request_id IS NOT NULL;
DROP TRIGGER job_admit;
CREATE TRIGGER job_admit BEFORE INSERT ON job BEGIN
  SELECT RAISE(FAIL, 'the job exists')
    WHERE EXISTS (SELECT 1 FROM job WHERE id = NEW.id)
       OR EXISTS (SELECT 1 FROM job WHERE owner = NEW.owner AND request_id = NEW.request_id);
END;
DROP TRIGGER job_fixed;
CREATE TRIGGER job_fixed BEFORE UPDATE OF id, request_id, owner ON job BEGIN
  SELECT RAISE(FAIL, 'a job keeps its id, its request id and its owner');
END;

ALTER TABLE placement ADD COLUMN by_administrator INTEGER NOT NULL DEFAULT 0
  CHECK (by_administrator IN (0, 1));
DROP INDEX placement_by_request;
CREATE UNIQUE INDEX placement_by_request ON placement (owner, request_id)
  WHERE request_id IS NOT NULL;

-- Names of patterns were unique among all. What root put stays everybody's to use.
CREATE TABLE pattern_of_owner (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  name TEXT NOT NULL CHECK (name <> ''),
  owner TEXT NOT NULL,
  rank_count INTEGER NOT NULL CHECK (rank_count >= 1),
  pair_count INTEGER NOT NULL CHECK (pair_count >= 0),
  total_bytes REAL NOT NULL CHECK (total_bytes >= 0),
  total_messages REAL NOT NULL CHECK (total_messages >= 0),
  created_ns INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL CHECK (stored_bytes >= 0),
  by_administrator INTEGER NOT NULL CHECK (by_administrator IN (0, 1))
) STRICT;
INSERT INTO pattern_of_owner
  SELECT id, name, owner, rank_count, pair_count, total_bytes, total_messages, created_ns,
         stored_bytes, owner = 'root'
  FROM pattern;
DROP TABLE pattern;
ALTER TABLE pattern_of_owner RENAME TO pattern;
CREATE UNIQUE INDEX pattern_by_owner ON pattern (name, owner) WHERE by_administrator = 0;
CREATE UNIQUE INDEX pattern_by_name ON pattern (name) WHERE by_administrator = 1;
CREATE TRIGGER pattern_takes_its_parts AFTER DELETE ON pattern BEGIN
  DELETE FROM pattern_part WHERE pattern_id = OLD.id;
END;

-- Limits that a holder was given; the configuration has those for all others. The greatest number is
-- "as much as there is".
CREATE TABLE quota (
  holder_kind TEXT NOT NULL CHECK (holder_kind IN ('user', 'account', 'tenant')),
  holder TEXT NOT NULL CHECK (holder <> ''),
  limit_name TEXT NOT NULL CHECK (limit_name <> ''),
  value INTEGER NOT NULL CHECK (value >= 0),
  PRIMARY KEY (holder_kind, holder, limit_name)
) STRICT, WITHOUT ROWID;

ALTER TABLE event ADD COLUMN actor TEXT NOT NULL DEFAULT '';
DROP VIEW event_list;
CREATE VIEW event_list AS
  SELECT id, datetime(time_ns / 1000000000, 'unixepoch') AS time, severity, kind, object, message,
         actor
  FROM event;

-- Rows come and go, oldest first, and are never changed. No index: who asks for them reads all.
CREATE TABLE deed (
  id INTEGER PRIMARY KEY CHECK (id > 0),
  time_ns INTEGER NOT NULL,
  share INTEGER NOT NULL CHECK (share BETWEEN 1 AND 3),
  caller TEXT NOT NULL,
  user TEXT NOT NULL,
  origin TEXT NOT NULL,
  method TEXT NOT NULL,
  object TEXT NOT NULL,
  outcome TEXT NOT NULL,
  count INTEGER NOT NULL CHECK (count > 0)
) STRICT;
CREATE TRIGGER deed_fixed BEFORE UPDATE ON deed BEGIN
  SELECT RAISE(FAIL, 'what was done stays as it was told');
END;

-- For people.

CREATE VIEW deed_list AS
  SELECT id, datetime(time_ns / 1000000000, 'unixepoch') AS time,
         CASE share WHEN 1 THEN 'user' WHEN 2 THEN 'administrator' ELSE 'denial' END AS share,
         caller, user, origin, method, object, outcome, count
  FROM deed;
