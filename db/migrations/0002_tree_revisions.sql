-- Schema 2. A granted tree may be planned anew: same id, next revision. Its row stays, because an id
-- is never taken twice; what it holds in the switches is freed and taken within one transaction.

-- What its request demanded, as the daemon writes it; empty: of an earlier daemon, or nothing.
ALTER TABLE tree ADD COLUMN demands TEXT NOT NULL DEFAULT '';

CREATE TRIGGER tree_revision BEFORE UPDATE OF revision ON tree BEGIN
  SELECT RAISE(FAIL, 'the revision of a tree rises by one')
    WHERE NEW.revision <> OLD.revision + 1;
END;

-- A tree without nodes takes no entries: that is how a tree that is being revised gives them back.
DROP TRIGGER tree_switch_keep;
CREATE TRIGGER tree_switch_keep BEFORE DELETE ON tree_switch BEGIN
  SELECT RAISE(FAIL, 'the tree is still granted: delete the tree')
    WHERE EXISTS (SELECT 1 FROM tree WHERE id = OLD.tree_id AND nodes <> '[]');
END;
CREATE TRIGGER tree_empty AFTER UPDATE OF nodes ON tree WHEN NEW.nodes = '[]' BEGIN
  DELETE FROM tree_switch WHERE tree_id = NEW.id;
END;
