-- Schema 3. The cost profile that a calibration put in force: one row, or none and the
-- configuration's holds.

CREATE TABLE profile (
  id INTEGER PRIMARY KEY CHECK (id = 1),
  toml TEXT NOT NULL CHECK (toml <> '')
) STRICT;
