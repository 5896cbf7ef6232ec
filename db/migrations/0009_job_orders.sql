-- Schema 9. Orders of jobs' ranks that somebody found, kept for the launcher until the job ends.

CREATE TABLE job_order (
  job_id INTEGER PRIMARY KEY CHECK (job_id > 0),
  position_count INTEGER NOT NULL CHECK (position_count > 0),
  note TEXT NOT NULL,
  created_ns INTEGER NOT NULL,
  positions TEXT NOT NULL
) STRICT;
-- Adds them up without reading the rows, which are long.
CREATE INDEX job_order_by_size ON job_order (position_count);

CREATE TRIGGER job_order_admit BEFORE INSERT ON job_order BEGIN
  SELECT RAISE(FAIL, 'the job of the order is not active')
    WHERE NOT EXISTS (SELECT 1 FROM job WHERE id = NEW.job_id AND state = 'active');
END;
CREATE TRIGGER job_order_fixed BEFORE UPDATE OF job_id ON job_order WHEN NEW.job_id <> OLD.job_id
BEGIN
  SELECT RAISE(FAIL, 'an order stays with its job');
END;
CREATE TRIGGER job_that_is_over_drops_its_order AFTER UPDATE OF state ON job
  WHEN NEW.state <> 'active' BEGIN
  DELETE FROM job_order WHERE job_id = NEW.id;
END;
CREATE TRIGGER job_takes_its_order AFTER DELETE ON job BEGIN
  DELETE FROM job_order WHERE job_id = OLD.id;
END;

-- For people.

CREATE VIEW job_order_list AS
  SELECT job_id, position_count, note,
         datetime(created_ns / 1000000000, 'unixepoch') AS created
  FROM job_order;
