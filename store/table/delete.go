package table

import (
	"context"
	"encoding/hex"
	"slices"

	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// MySQL may execute a DELETE with a list as a scan of the whole table, which waits for every row that another transaction has
// locked, or has inserted and not committed. Here it is led from the list to the rows.

// deleteNamed deletes rows of one of our own tables, whose key is a feed, more if need be, and the row's ID.
func (c *Config) deleteNamed(ctx context.Context, tx sqltext.Querier, table, feed, more string, rowIDs []string) error {
	for part := range slices.Chunk(rowIDs, chunk) {
		s := c.stmt("DELETE FROM ", table, " WHERE feed = ").Word(feed).SQL(more, " AND ").Words("row_id", part)
		if c.Dialect == sqltext.MySQL {
			s = c.stmt("DELETE t FROM ").Add(listed(part, bytesLiteral)).SQL(" STRAIGHT_JOIN ", table, " t FORCE INDEX (PRIMARY) ON feed = ")
			s.Word(feed).SQL(more, " AND t.row_id = o.item")
		}
		if _, err := s.Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// remove deletes rows of the table. What only adds is a further condition.
func (t *table) remove(ctx context.Context, tx sqltext.Querier, rowIDs []string, only func(*sqltext.Stmt)) error {
	size := chunk
	if t.cfg.Dialect == sqltext.MySQL && (t.ids == idText || t.ids == idUUID) {
		size = 1 // a list has a collation of its own
	}
	for part := range slices.Chunk(rowIDs, size) {
		s := t.cfg.stmt("DELETE FROM ", t.name, " WHERE ")
		if t.cfg.Dialect == sqltext.MySQL && size > 1 {
			s = t.cfg.stmt("DELETE t FROM ").Add(listed(part, t.literal)).SQL(" STRAIGHT_JOIN ", t.name, " t ON t.", t.id, " = o.item WHERE TRUE")
		} else {
			s.Add(idIn(t, part))
		}
		if only != nil {
			s.SQL(" AND ")
			only(s)
		}
		if _, err := s.Exec(ctx, tx); err != nil {
			return err
		}
	}
	return nil
}

// listed adds a list of MySQL's as a table, o, with a column item.
func listed(list []string, literal func(string) string) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		s.SQL("(SELECT ", literal(list[0]), " AS item")
		for _, text := range list[1:] {
			s.SQL(" UNION ALL SELECT ", literal(text))
		}
		return s.SQL(") o")
	}
}

func bytesLiteral(text string) string { return "x'" + hex.EncodeToString([]byte(text)) + "'" }
