package classic

import (
	"context"
	"strings"

	"github.com/postrider/postrider"
)

// find returns the rows of a message. It is not known to be complete where IDs are derived from those of the rows: that cannot be
// turned around.
func (t *table) find(ctx context.Context, q querier, id postrider.ID) (rowIDs []string, complete bool, err error) {
	s := t.cfg.stmt("SELECT ", t.rowID, " FROM ", t.name, " WHERE ")
	column := t.layout.Columns.MessageID
	switch {
	case column != "":
		t.isID(s, column, id)
	case t.ids == idInteger:
		return nil, false, nil
	default:
		s.rows(t, []string{id.String()})
	}
	err = s.each(ctx, q, func(scan func(...any) error) error {
		var rowID string
		err := scan(&rowID)
		rowIDs = append(rowIDs, rowID)
		return err
	})
	return rowIDs, len(rowIDs) > 0 || t.layout.native || column == "" && t.ids != idText, err
}

// isID adds the condition that a column holds an ID, which as text may be in capitals.
func (t *table) isID(s *stmt, column string, id postrider.ID) {
	info, text := t.columns[column], id.String()
	s.sql(t.quote(column))
	switch {
	case info.kind == "uuid" && t.cfg.Dialect == PostgreSQL:
		s.sql(" = CAST(").arg(text).sql(" AS uuid)")
	case info.kind == "binary" && info.length == 16:
		s.sql(" = x'", strings.ReplaceAll(text, "-", ""), "'")
	default:
		s.sql(" IN (").text(text).sql(", ").text(strings.ToUpper(text)).sql(")")
	}
}
