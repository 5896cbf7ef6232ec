-- Schema 14. Trees that switches carry: the key that members and switches of a tree at this revision
-- show each other, and what was agreed with the switches. No key: no switch carries the tree.
-- Whoever reads this file can join those trees, as he can read all else that is kept here.

ALTER TABLE tree ADD COLUMN install_key BLOB
  CHECK (install_key IS NULL OR length(install_key) = 16);
ALTER TABLE tree ADD COLUMN segment_bytes INTEGER NOT NULL DEFAULT 0 CHECK (segment_bytes >= 0);
ALTER TABLE tree ADD COLUMN segment_window INTEGER NOT NULL DEFAULT 0 CHECK (segment_window >= 0);
