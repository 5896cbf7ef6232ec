-- Schema 19. Entries of switches and nodes that are kept for a tenant. Rows go when they end.

CREATE TABLE reservation (
  id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (id >= 1),
  tenant TEXT NOT NULL CHECK (tenant <> ''),
  entries INTEGER NOT NULL CHECK (entries >= 0),  -- of each of the switches
  switches TEXT NOT NULL,                         -- GUIDs, as in the other lists
  nodes TEXT NOT NULL,                            -- names of hosts
  lends INTEGER NOT NULL CHECK (lends IN (0, 1)),
  from_ns INTEGER NOT NULL,
  until_ns INTEGER NOT NULL CHECK (until_ns > from_ns),
  created_ns INTEGER NOT NULL
) STRICT;
