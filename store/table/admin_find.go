package table

import (
	"context"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// find returns the rows of a message. It is not known to be complete where IDs are derived from those of the rows: that cannot be
// turned around.
func (t *table) find(ctx context.Context, q sqltext.Querier, id postrider.ID) (rowIDs []string, complete bool, err error) {
	s := t.cfg.stmt("SELECT ", t.rowID, " FROM ", t.name, " WHERE ")
	column := t.layout.Columns.MessageID
	switch {
	case column != "":
		t.isID(s, column, id)
	case t.ids == idInteger:
		return nil, false, nil
	default:
		s.Add(idIn(t, []string{id.String()}))
	}
	err = s.Each(ctx, q, func(scan func(...any) error) error {
		var rowID string
		err := scan(&rowID)
		rowIDs = append(rowIDs, rowID)
		return err
	})
	return rowIDs, len(rowIDs) > 0 || t.layout.native || column == "" && t.ids != idText, err
}

// isID adds the condition that a column holds an ID, which as text may be in capitals.
func (t *table) isID(s *sqltext.Stmt, column string, id postrider.ID) {
	info, text := t.columns[column], id.String()
	s.SQL(t.quote(column))
	switch {
	case info.kind == "uuid" && t.cfg.Dialect == sqltext.PostgreSQL:
		s.SQL(" = CAST(").Arg(text).SQL(" AS uuid)")
	case info.kind == "binary" && info.length == 16:
		s.SQL(" = x'", strings.ReplaceAll(text, "-", ""), "'")
	default:
		s.SQL(" IN (").Text(text).SQL(", ").Text(strings.ToUpper(text)).SQL(")")
	}
}
