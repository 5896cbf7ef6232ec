-- Schema 15. Forests: trees over the same ranks that share every message. They live and die as one
-- tree, whose row this is; `nodes` has the first of them.

ALTER TABLE tree ADD COLUMN forest TEXT NOT NULL DEFAULT '[]';
