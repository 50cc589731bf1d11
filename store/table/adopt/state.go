package adopt

import (
	"fmt"
	"slices"

	"github.com/postrider/postrider/store/table/internal/catalog"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// state finds out how the table says what has become of a row.
func (p *proposer) state() {
	s := &p.l.State
	preset := []string{s.Processing, s.Published, s.Failed, s.Dead}
	preset = append(preset, s.Pending...)
	s.Pending, s.Processing, s.Published, s.Failed, s.Dead, s.Delete = nil, "", "", "", "", false
	if s.Status != "" {
		p.words(p.t.Column(s.Status), preset)
		return
	}
	if c := p.t.Column(s.PublishedAt); c != nil && c.Nullable {
		return
	}
	s.PublishedAt, s.Delete = "", true
}

// words sorts the words of a status by what they mean.
func (p *proposer) words(c *catalog.Column, preset []string) {
	s := &p.l.State
	if catalog.IsBoolean(c) {
		s.Pending, s.Published = []string{"false"}, "true"
		if p.t.Dialect == sqltext.MySQL {
			s.Pending, s.Published = []string{"0"}, "1"
		}
		return
	}
	found, complete := wordsOf(p.t, c)
	by := make(map[meaning][]string)
	var unknown []string
	for _, word := range found {
		if m := meaningOf(word); m != 0 && expressible(word) {
			by[m] = append(by[m], word)
		} else {
			unknown = append(unknown, word)
		}
	}
	for _, word := range preset {
		if m := meaningOf(word); m != 0 && len(by[m]) == 0 && !complete {
			by[m] = []string{likeThose(word, found)}
		}
	}
	first := func(m meaning) string {
		if len(by[m]) == 0 {
			return ""
		}
		return by[m][0]
	}
	s.Pending, s.Processing, s.Published = by[meansPending], first(meansProcessing), first(meansPublished)
	s.Failed, s.Dead = first(meansFailed), first(meansDead)
	if s.Dead == "" {
		s.Failed, s.Dead = "", s.Failed // one word for failures means the last: what is tried again waits
	}
	unknown = p.assume(c, found, unknown, complete)
	if len(unknown) > 0 {
		p.warn("status-words", "Nobody can say what %s of %q %s: rows with it are left alone.", catalog.QuotedList(unknown), c.Name,
			map[bool]string{true: "means", false: "mean"}[len(unknown) == 1])
	}
}

// assume fills in the words without which nothing works, and says so. It returns the words that are still unknown.
func (p *proposer) assume(c *catalog.Column, found, unknown []string, complete bool) []string {
	s := &p.l.State
	if quoted := catalog.Literals(c.Default); len(quoted) > 0 {
		if at := slices.Index(s.Pending, quoted[0]); at > 0 { // what the producers write comes first
			s.Pending = append([]string{quoted[0]}, slices.Delete(s.Pending, at, at+1)...)
		} else if len(s.Pending) == 0 && slices.Contains(unknown, quoted[0]) && expressible(quoted[0]) {
			s.Pending = quoted[:1]
			unknown = slices.DeleteFunc(unknown, func(w string) bool { return w == quoted[0] })
			p.warn("status-words", "Rows are assumed to wait while %q is %q, because that is its default.", c.Name, quoted[0])
		}
	}
	if len(s.Pending) == 0 {
		word := likeThose("pending", found)
		if complete && len(unknown) > 0 && expressible(unknown[0]) {
			word, unknown = unknown[0], unknown[1:]
		}
		s.Pending = []string{word}
		p.warn("status-words", "No row says how %q marks what waits: %q is assumed.", c.Name, word)
	}
	switch {
	case s.Published != "":
	case complete:
		s.Delete = true
		p.warn("status-words", "No word of %q means that a message was delivered: delivered rows are deleted.", c.Name)
	default:
		s.Published = likeThose("published", found)
		p.warn("status-words", "No row says how %q marks what was delivered: %q is assumed.", c.Name, s.Published)
	}
	return unknown
}

func (p *proposer) warn(about, format string, args ...any) {
	p.Warnings = append(p.Warnings, Warning{about, fmt.Sprintf(format, args...)})
}
