package tolog

import (
	"cmp"
	"strings"
)

// install returns the statements that let new rows go to the log. They run in one transaction.
func (t *source) install() []string {
	declare, read := t.readHeaders()
	function := `CREATE OR REPLACE FUNCTION ` + t.beside() + `() RETURNS trigger
  LANGUAGE plpgsql SECURITY DEFINER  -- who may write to the table need not be allowed to write to the log
  SET search_path = pg_catalog, pg_temp
AS $postrider$
` + declare + `BEGIN
  PERFORM setval(` + literal(t.beside()) + `, extract(epoch FROM clock_timestamp())::bigint);  -- when the table was last written to
  ` + read + `BEGIN
    ` + t.insert() + `
  EXCEPTION WHEN check_violation OR string_data_right_truncation THEN
    -- Beyond the limits of the log: the row stays where it is, and its writer goes on.
    RAISE WARNING '%', SQLERRM || '; the row stays in its table';
    RETURN NULL;
  END;
  ` + t.mark() + `
  RETURN NULL;
END
$postrider$`
	statements := []string{
		`CREATE SEQUENCE IF NOT EXISTS ` + t.beside(),
		function,
		`REVOKE ALL ON FUNCTION ` + t.beside() + `() FROM PUBLIC`,
		// After the insert and not before: a row that ON CONFLICT leaves out is no message. Its lock waits until every transaction
		// that has written to the table has ended, so all rows that this trigger has not seen are visible from then on.
		`CREATE TRIGGER ` + trigger + ` AFTER INSERT ON ` + t.full() + ` FOR EACH ROW
  WHEN (` + t.waits("NEW.") + `) EXECUTE FUNCTION ` + t.beside() + `()`,
	}
	if over := t.over("OLD."); over != "" {
		// A row that was at its end and waits again, set back by hand or by ON CONFLICT DO UPDATE, is to be sent too. One that relays of the
		// table set back, to try it again, was not at its end.
		statements = append(statements, `CREATE TRIGGER `+trigger+`_again AFTER UPDATE ON `+t.full()+` FOR EACH ROW
  WHEN (`+t.waits("NEW.")+` AND `+over+`) EXECUTE FUNCTION `+t.beside()+`()`)
	}
	return statements
}

// insert is the statement that copies a row.
func (t *source) insert() string {
	var columns, values []string
	for _, one := range t.copied() {
		columns = append(columns, one[0])
		values = append(values, one[1])
	}
	insert := "INSERT INTO " + t.log + ".messages (" + strings.Join(columns, ", ") + ")\n    VALUES (\n      " +
		strings.Join(values, ",\n      ") + ");"
	if key := t.Columns.DedupKey; key != "" {
		// What the table's own constraint cannot see: the same fact, enqueued by a process that was switched before.
		insert = "IF " + t.text(key) + " IS NULL OR EXISTS (SELECT FROM " + t.log + ".claim_keys(ARRAY[" + t.text(key) + "])) THEN\n    " +
			insert + "\n  END IF;"
	}
	return insert
}

// mark says of the row that it needs no delivery any more, in the table's own words.
func (t *source) mark() string {
	where := " WHERE " + quote(t.ID) + " = " + column(t.ID) + ";"
	s := &t.State
	var set []string
	if s.Status != "" && s.Published != "" {
		set = append(set, quote(s.Status)+" = "+literal(s.Published))
	}
	for _, name := range []string{s.PublishedAt, s.UpdatedAt} {
		if name != "" {
			set = append(set, quote(name)+" = clock_timestamp()")
		}
	}
	if s.Delete || len(set) == 0 {
		return "DELETE FROM " + t.full() + where
	}
	return "UPDATE " + t.full() + " SET " + strings.Join(set, ", ") + where
}

// remove returns the statements that undo install.
func (t *source) remove() []string {
	return []string{
		`DROP TRIGGER IF EXISTS ` + trigger + ` ON ` + t.full(),
		`DROP TRIGGER IF EXISTS ` + trigger + `_again ON ` + t.full(),
		`DROP FUNCTION IF EXISTS ` + t.beside() + `()`,
		`DROP SEQUENCE IF EXISTS ` + t.beside(),
	}
}

// claim returns the statement that makes the log remember the dedup keys of the table, or nothing. It comes after the trigger, which
// claims those of new rows, and before the first process is switched.
func (t *source) claim() string {
	key := t.Columns.DedupKey
	if key == "" {
		return ""
	}
	written := ""
	if at := cmp.Or(t.Columns.CreatedAt, t.Columns.OccurredAt); at != "" { // what is older, the log would have forgotten too
		written = ` AND ` + quote(at) + `::timestamptz > clock_timestamp() - ` + t.log + `.dedup_window()`
	}
	return `INSERT INTO ` + t.log + `.dedup_keys (key) SELECT DISTINCT ` + quote(key) + `::text FROM ` + t.full() +
		` WHERE ` + quote(key) + `::text <> ''` + written + ` ON CONFLICT DO NOTHING`
}
