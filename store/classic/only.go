package classic

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/store/feeds"
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
			errs = append(errs, fmt.Errorf("classic: only: %s: table %s has no column for it, so nothing would be sent; name one with columns: {%s: NAME}",
				x.name, l.Table, x.key))
		}
	}
	return errors.Join(errs...)
}

// only adds, behind others, the condition that a row is meant by a filter. Texts are compared byte by byte, as [route.Match] does.
func (s *stmt) only(t *table, only *route.Match) *stmt {
	if only.IsEmpty() {
		return s
	}
	s.sql(" AND (")
	if t.layout.native {
		s.sql(t.bytesOf(t.layout.Columns.Type), " = ").word(feeds.CanaryType).sql(" OR ") // which is everybody's
	}
	s.sql("1 = 1")
	for _, x := range t.layout.labels(only) {
		if constant, meant := x.isConstant(); constant {
			if !meant {
				s.sql(" AND 1 = 0")
			}
			continue
		}
		for i, pattern := range x.patterns {
			if i == 0 {
				s.sql(" AND (")
			} else {
				s.sql(" OR ")
			}
			if strings.Contains(pattern, "*") {
				s.sql(t.bytesOf(x.column), " LIKE ").word(likeOf(pattern)).sql(" ESCAPE '!'")
			} else {
				s.sql(t.bytesOf(x.column), " = ").word(pattern)
			}
		}
		s.sql(")")
	}
	return s.sql(")")
}

// bytesOf is a column's text, or an empty one, for comparisons that know neither case nor collation.
func (t *table) bytesOf(column string) string {
	text := "coalesce(" + t.asText(column) + ", '')"
	if t.cfg.Dialect == MySQL {
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
