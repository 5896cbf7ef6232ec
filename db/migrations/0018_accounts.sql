-- Schema 18. Accounts, which pay for what their users hold, and on whose account each thing is held; '': on none, as
-- everything that an earlier release made.

CREATE TABLE account (
  name TEXT NOT NULL PRIMARY KEY CHECK (name <> ''),
  parent TEXT NOT NULL DEFAULT '',  -- '': none
  tenant TEXT NOT NULL DEFAULT ''   -- '': its parent's
) STRICT, WITHOUT ROWID;

CREATE TABLE account_user (
  user TEXT NOT NULL CHECK (user <> ''),
  account TEXT NOT NULL REFERENCES account (name),
  is_default INTEGER NOT NULL CHECK (is_default IN (0, 1)),
  PRIMARY KEY (user, account)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX account_by_default ON account_user (user) WHERE is_default = 1;

ALTER TABLE job ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE placement ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE pattern ADD COLUMN account TEXT NOT NULL DEFAULT '';
