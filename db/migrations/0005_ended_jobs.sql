-- Schema 5. Jobs that are over are dropped in the order in which they ended; this finds them.

CREATE INDEX job_by_end ON job (ended_ns) WHERE ended_ns IS NOT NULL;
