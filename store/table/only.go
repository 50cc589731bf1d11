package table

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// label is what a filter looks at: a column, or what stands for it in a table without one.
type label struct {
	name     string // of the list, in a configuration file
	key      string // of the column
	patterns []string
	column   string
	constant string
}

func (l *Layout) labels(only *route.Match) []label {
	return []label{
		{"types", "type", only.Types, l.Columns.Type, l.DefaultType},
		{"topics", "topic", only.Topics, l.Columns.Topic, l.DefaultTopic},
		{"tenants", "tenant_id", only.Tenants, l.Columns.TenantID, ""},
	}
}

// isConstant reports whether all rows have the same, and whether that is meant.
func (l *label) isConstant() (constant, meant bool) {
	if len(l.patterns) == 0 {
		return true, true
	}
	m := route.Match{Topics: l.patterns}
	return l.column == "", m.Matches(&postrider.Message{Topic: l.constant})
}

// checkOnly refuses a filter by what the table does not say: no row would ever be sent.
func (l *Layout) checkOnly(only *route.Match) error {
	var errs []error
	for _, x := range l.labels(only) {
		if constant, meant := x.isConstant(); constant && !meant {
			errs = append(errs, fmt.Errorf("table: only: %s: table %s has no column for it, so nothing would be sent; name one with columns: {%s: NAME}",
				x.name, l.Table, x.key))
		}
	}
	return errors.Join(errs...)
}

// only adds, behind others, the condition that a row is meant by a filter. Texts are compared byte by byte, as [route.Match] does.
func filtered(t *table, only *route.Match) func(*sqltext.Stmt) *sqltext.Stmt {
	return func(s *sqltext.Stmt) *sqltext.Stmt {
		if only.IsEmpty() {
			return s
		}
		s.SQL(" AND (")
		if t.layout.native {
			s.SQL(t.bytesOf(t.layout.Columns.Type), " = ").Word(feeds.CanaryType).SQL(" OR ") // which is everybody's
		}
		s.SQL("1 = 1")
		for _, x := range t.layout.labels(only) {
			if constant, meant := x.isConstant(); constant {
				if !meant {
					s.SQL(" AND 1 = 0")
				}
				continue
			}
			for i, pattern := range x.patterns {
				if i == 0 {
					s.SQL(" AND (")
				} else {
					s.SQL(" OR ")
				}
				if strings.Contains(pattern, "*") {
					s.SQL(t.bytesOf(x.column), " LIKE ").Word(likeOf(pattern)).SQL(" ESCAPE '!'")
				} else {
					s.SQL(t.bytesOf(x.column), " = ").Word(pattern)
				}
			}
			s.SQL(")")
		}
		return s.SQL(")")
	}
}

// bytesOf is a column's text, or an empty one, for comparisons that know neither case nor collation.
func (t *table) bytesOf(column string) string {
	text := "coalesce(" + t.asText(column) + ", '')"
	if t.cfg.Dialect == sqltext.MySQL {
		return "CAST(convert(" + text + " USING utf8mb4) AS binary)"
	}
	return text + ` COLLATE "C"`
}

// likeOf writes a pattern of a filter as LIKE has it.
func likeOf(pattern string) string {
	return strings.NewReplacer("!", "!!", "%", "!%", "_", "!_", "*", "%").Replace(pattern)
}

// storedFilter is a filter as the feed's entry has it.
type storedFilter struct {
	Types   []string `json:"types,omitempty"`
	Topics  []string `json:"topics,omitempty"`
	Tenants []string `json:"tenants,omitempty"`
}

// filterText is a filter as it is stored; nothing for that which means all.
func filterText(only *route.Match) string {
	if only.IsEmpty() {
		return ""
	}
	text, err := json.Marshal(storedFilter(*only))
	if err != nil {
		panic(err) // lists of texts can be encoded
	}
	return string(text)
}

func parseFilter(text string) (route.Match, error) {
	var f storedFilter
	if text == "" {
		return route.Match{}, nil
	}
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return route.Match{}, fmt.Errorf("the filter of a feed: %w", err)
	}
	return route.Match(f), nil
}
