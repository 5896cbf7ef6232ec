-- Schema 12. Ended jobs by owner, each of whom has a share of what is kept.
CREATE INDEX job_by_owner_end ON job (owner, ended_ns) WHERE ended_ns IS NOT NULL;

-- A row of the account may stand for several deeds of one kind: their number, and when the
-- first was.

DROP TRIGGER deed_fixed;
ALTER TABLE deed ADD COLUMN first_ns INTEGER NOT NULL DEFAULT 0;
UPDATE deed SET first_ns = time_ns;
CREATE TRIGGER deed_fixed BEFORE UPDATE ON deed
  WHEN NEW.count < OLD.count OR NEW.first_ns > OLD.first_ns
    OR (NEW.id, NEW.time_ns, NEW.share, NEW.caller, NEW.user, NEW.origin, NEW.method, NEW.object,
        NEW.outcome)
       IS NOT (OLD.id, OLD.time_ns, OLD.share, OLD.caller, OLD.user, OLD.origin, OLD.method,
               OLD.object, OLD.outcome)
BEGIN
  SELECT RAISE(FAIL, 'what was done stays as it was told');
END;

DROP VIEW deed_list;
CREATE VIEW deed_list AS
  SELECT id, datetime(time_ns / 1000000000, 'unixepoch') AS time,
         CASE share WHEN 1 THEN 'user' WHEN 2 THEN 'administrator' ELSE 'denial' END AS share,
         caller, user, origin, method, object, outcome, count,
         datetime(first_ns / 1000000000, 'unixepoch') AS first
  FROM deed;
