package adopt

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// findMissing lists what the table lacks: indexes first, because without them every read looks at every row.
func (p *proposer) findMissing() {
	if !slices.ContainsFunc(p.t.Indexes, func(x catalog.Index) bool { return x.Where == "" && x.Columns[0] == p.l.ID }) {
		p.Missing = append(p.Missing, Remedy{
			What: "an index on " + p.l.ID,
			Why:  "Without one, a delivered row is found again by looking at all of them.",
			SQL:  p.createIndex("by_id", []string{p.l.ID}, ""),
		})
	}
	column, words := p.l.Waiting()
	if p.t.WaitingIndex(column, words, p.l.OrderBy[0]) == nil && !(column == "" && p.l.OrderBy[0] == p.l.ID) {
		p.Missing = append(p.Missing, p.createWaitingIndex())
	}
	s := &p.l.State
	p.column("attempts", s.Attempts, "integer NOT NULL DEFAULT 0", "The table then shows how often a message has failed.")
	p.column("last_error", s.LastError, "text", "The table then shows why a message has failed.")
	if s.Status != "" && !s.Delete {
		p.column("published_at", s.PublishedAt, p.time(), "Without it, the age of delivered rows is taken from when they were last changed, or written.")
	}
	if s.Processing != "" {
		p.column("claimed_at", s.ClaimedAt, p.time(), "A claim that a relay has left behind is then known by its age, and a younger one is respected.")
	}
}

func (p *proposer) createWaitingIndex() Remedy {
	d := p.t.Dialect
	column, waiting := p.l.Waiting()
	r := Remedy{
		What: "an index by which waiting rows are found in their order",
		Why:  "Without one, every read of a relay looks at every row that waits, or at the whole table.",
	}
	switch {
	case column == "":
		r.SQL = p.createIndex("waiting", p.l.OrderBy, "")
	case d == sqltext.MySQL:
		r.SQL = p.createIndex("waiting", append([]string{column}, p.l.OrderBy...), "")
	case p.l.State.Status == "":
		r.SQL = p.createIndex("waiting", p.l.OrderBy, d.Quote(column)+" IS NULL")
	default:
		var words []string
		for _, word := range waiting {
			words = append(words, d.Literal(word))
		}
		r.SQL = p.createIndex("waiting", p.l.OrderBy, d.Quote(column)+" IN ("+strings.Join(words, ", ")+")")
	}
	return r
}

// createIndex returns a statement that does not keep producers waiting, where the server can do that.
func (p *proposer) createIndex(suffix string, columns []string, where string) string {
	d := p.t.Dialect
	_, table := p.t.Split()
	var list []string
	for _, name := range columns {
		quoted := d.Quote(name)
		if c := p.t.Column(name); d == sqltext.MySQL && (catalog.Has(c, "text", "longtext", "mediumtext", "tinytext", "blob", "longblob", "mediumblob")) {
			quoted += "(191)"
		}
		list = append(list, quoted)
	}
	how := "CREATE INDEX"
	if d == sqltext.PostgreSQL && !p.t.Partitioned {
		how = "CREATE INDEX CONCURRENTLY"
	}
	text := fmt.Sprintf("%s %s ON %s (%s)", how, d.Quote(shorten(table, 63-len(suffix)-1)+"_"+suffix), d.QuoteTable(p.t.Name), strings.Join(list, ", "))
	if where != "" {
		text += " WHERE " + where
	}
	return text + ";"
}

// shorten cuts a name at a number of bytes, between two characters.
func shorten(name string, most int) string {
	for len(name) > most {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}

// column proposes to add one that the table can do without.
func (p *proposer) column(key, mapped, kind, why string) {
	if mapped != "" {
		return
	}
	name := key
	if isCamel(p.t) {
		parts := strings.Split(key, "_")
		for i := 1; i < len(parts); i++ {
			parts[i] = strings.ToUpper(parts[i][:1]) + parts[i][1:]
		}
		name = strings.Join(parts, "")
	}
	if p.t.Column(name) != nil { // something else is called so
		name = "postrider_" + key
	}
	if p.t.Column(name) != nil {
		return
	}
	p.Missing = append(p.Missing, Remedy{
		What: "a column for " + key, Why: why, Optional: true,
		SQL: fmt.Sprintf("ALTER TABLE %s ADD COLUMN %s %s;", p.t.Dialect.QuoteTable(p.t.Name), p.t.Dialect.Quote(name), kind),
	})
}

func (p *proposer) time() string {
	if p.t.Dialect == sqltext.MySQL {
		return "datetime(6) NULL"
	}
	return "timestamptz"
}
