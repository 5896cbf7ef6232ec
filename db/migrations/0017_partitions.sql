-- Schema 17. The partition that a job's trees stay in, and that a placement's nodes are in for the job to come (IBA
-- vol. 1, 10.9); 0: none, as of those that an earlier release made and of fabrics whose ports tell none.

ALTER TABLE job ADD COLUMN partition INTEGER NOT NULL DEFAULT 0 CHECK (partition BETWEEN 0 AND 32767);
ALTER TABLE placement ADD COLUMN partition INTEGER NOT NULL DEFAULT 0 CHECK (partition BETWEEN 0 AND 32767);
