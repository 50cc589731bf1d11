package table

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider/store/table/internal/catalog"
)

// Check reports what in a table would make a relay mark rows that it has not sent, or send rows that it cannot mark. A store does so
// before the first message. The table is what package adopt finds out.
func (l *Layout) Check(t *catalog.Table) error {
	return errors.Join(t.CheckID(l.ID), t.CheckOrder(l.OrderBy), l.checkWords(t))
}

// checkWords refuses words that the status cannot hold.
func (l *Layout) checkWords(t *catalog.Table) error {
	s := &l.State
	c := t.Column(s.Status)
	if c == nil {
		return nil
	}
	var errs []error
	seen := map[string]bool{"": true}
	for _, x := range append(wordsAs("pending", s.Pending...),
		[2]string{"processing", s.Processing}, [2]string{"published", s.Published}, [2]string{"failed", s.Failed}, [2]string{"dead", s.Dead}) {
		if why := c.Refuses(t.Dialect, x[1]); !seen[x[1]] && why != "" {
			errs = append(errs, fmt.Errorf("table: the status %q of table %s cannot hold the word %q for %s rows: %s. Change the column, or the word with "+
				"status: {%s: WORD}", c.Name, t.Name, x[1], x[0], why, x[0]))
		}
		seen[x[1]] = true
	}
	return errors.Join(errs...)
}

func wordsAs(meaning string, words ...string) (all [][2]string) {
	for _, word := range words {
		all = append(all, [2]string{meaning, word})
	}
	return all
}
