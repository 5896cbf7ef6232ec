-- Schema 17. The partition that a job's trees stay in (IBA vol. 1, 10.9); 0: none, as of jobs that an earlier release
-- registered and of fabrics whose ports tell none.

ALTER TABLE job ADD COLUMN partition INTEGER NOT NULL DEFAULT 0 CHECK (partition BETWEEN 0 AND 32767);
