-- Schema 6. Communication patterns by the name of their application.
--
-- A pattern's data is large: it comes in parts before the pattern itself, which is what makes them
-- count. Parts of a pattern that never came are dropped when the database is opened, with its id.

CREATE TABLE pattern (
  id INTEGER PRIMARY KEY CHECK (id >= 1),
  name TEXT NOT NULL UNIQUE CHECK (name <> ''),
  owner TEXT NOT NULL,
  rank_count INTEGER NOT NULL CHECK (rank_count >= 1),
  pair_count INTEGER NOT NULL CHECK (pair_count >= 0),
  total_bytes REAL NOT NULL CHECK (total_bytes >= 0),
  total_messages REAL NOT NULL CHECK (total_messages >= 0),
  created_ns INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL CHECK (stored_bytes >= 0)
);

CREATE TABLE pattern_part (
  pattern_id INTEGER NOT NULL,
  part INTEGER NOT NULL CHECK (part >= 0),
  data BLOB NOT NULL,
  PRIMARY KEY (pattern_id, part)
) WITHOUT ROWID;

CREATE TRIGGER pattern_takes_its_parts AFTER DELETE ON pattern BEGIN
  DELETE FROM pattern_part WHERE pattern_id = OLD.id;
END;
