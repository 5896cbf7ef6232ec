-- Schema 13. The ranks of a job in slices, beside its row: a job of a million ranks is written step by
-- step, and its end writes one small row. Slices of a job that never came are dropped when the
-- database is opened.

CREATE TABLE job_ranks (
  job_id INTEGER NOT NULL CHECK (job_id > 0),
  first_rank INTEGER NOT NULL CHECK (first_rank >= 0),
  endpoints TEXT NOT NULL,
  PRIMARY KEY (job_id, first_rank)
) STRICT, WITHOUT ROWID;
INSERT INTO job_ranks SELECT id, 0, endpoints FROM job WHERE endpoints <> '[]';

DROP VIEW job_endpoint;
ALTER TABLE job DROP COLUMN endpoints;

CREATE TRIGGER job_takes_its_ranks AFTER DELETE ON job BEGIN
  DELETE FROM job_ranks WHERE job_id = OLD.id;
END;

-- For people.

CREATE VIEW job_endpoint AS
  SELECT r.job_id, r.first_rank + e.key AS rank, e.value AS port_guid
  FROM job JOIN job_ranks r ON r.job_id = job.id, json_each(r.endpoints) e;
