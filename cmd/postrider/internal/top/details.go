package top

import (
	"fmt"
	"strconv"

	"github.com/postrider/postrider/internal/phrase"
)

// blocked returns the blocked keys of all feeds.
func (s *State) blocked() []line {
	total := 0
	for i := range s.Feeds {
		total += s.Feeds[i].Blocked
	}
	if s.Inside != "" {
		return []line{looking}
	}
	if total == 0 || len(s.Blocked) == 0 {
		return []line{{{text: " No key is blocked."}}}
	}
	rows := make([][]span, len(s.Blocked))
	for i := range s.Blocked {
		k := &s.Blocked[i]
		rows[i] = []span{
			{text: clean(k.Feed)}, {text: named(k.Key)}, {text: phrase.Age(max(0, s.At.Sub(k.Since)))}, {text: strconv.Itoa(k.Waiting)},
			{text: clean(k.Head.LastError)},
		}
	}
	return append([]line{heading("blocked key", "blocked keys", len(rows), total)}, table([]column{
		{"FEED", 8, 24, false}, {"KEY", 8, 32, false}, {"SINCE", 6, -1, true}, {"WAITING", 7, -1, true}, {"CAUSE", 0, -1, false},
	}, rows)...)
}

// details returns the blocked keys and dead letters of one feed, each with its error on a second
// line.
func (s *State) details() []line {
	i := s.index()
	if i < 0 || s.Inside != s.selected {
		return []line{looking}
	}
	keys, deadLetters := make([][]span, len(s.Blocked)), make([][]span, len(s.Dead))
	whyKeys, whyDeadLetters := make([]string, len(s.Blocked)), make([]string, len(s.Dead))
	for k := range s.Blocked {
		b := &s.Blocked[k]
		next := "never"
		if !b.Head.AvailableAt.IsZero() {
			next = "in " + phrase.Age(max(0, b.Head.AvailableAt.Sub(s.At)))
		}
		keys[k] = []span{
			{text: named(b.Key)}, {text: phrase.Age(max(0, s.At.Sub(b.Since)))}, {text: strconv.Itoa(b.Head.Attempts)}, {text: b.Head.ID.String()},
			{text: strconv.Itoa(b.Waiting)}, {text: next},
		}
		whyKeys[k] = b.Head.LastError
	}
	for d := range s.Dead {
		l := &s.Dead[d]
		deadLetters[d] = []span{
			{text: named(l.OrderKey())}, {text: phrase.Age(max(0, s.At.Sub(l.DeferredAt)))}, {text: strconv.Itoa(l.Attempts)}, {text: l.ID.String()},
			{text: clean(l.Type)},
		}
		whyDeadLetters[d] = l.LastError
	}
	cols := []column{{"KEY", 16, 24, false}, {"SINCE", 6, -1, true}, {"TRIES", 5, -1, true}, {"ID", 36, -1, false}}
	lines := s.problems(&s.Feeds[i])
	lines = append(lines, heading("blocked key", "blocked keys", len(keys), s.Feeds[i].Blocked))
	lines = append(lines, explained(append(cols[:4:4], column{"WAITING", 7, -1, true}, column{"NEXT TRY", 8, -1, true}), keys, whyKeys)...)
	lines = append(lines, line{}, heading("dead letter", "dead letters", len(deadLetters), s.Feeds[i].Dead))
	return append(lines, explained(append(cols[:4:4], column{"TYPE", 0, -1, false}), deadLetters, whyDeadLetters)...)
}

// problems returns the problems of the feed's destination, or nothing.
func (s *State) problems(f *Feed) []line {
	if len(f.Problems) == 0 {
		return nil
	}
	rows, why := make([][]span, len(f.Problems)), make([]string, len(f.Problems))
	for i, p := range f.Problems {
		name := span{"the destination", red}
		if p.Name != "" {
			name.text = clean(p.Name)
		}
		rows[i] = []span{name, {text: phrase.Age(max(0, s.At.Sub(p.Since)))}, {text: strconv.FormatInt(p.Failures, 10)}}
		why[i] = p.Cause
	}
	lines := []line{heading("problem of the destination", "problems of the destination", len(rows), len(rows))}
	return append(append(lines, explained([]column{{"NAME", 16, 60, false}, {"SINCE", 6, -1, true}, {"FAILURES", 8, -1, true}}, rows, why)...), line{})
}

// explained returns a table with a text below each row, or nothing without rows.
func explained(cols []column, rows [][]span, why []string) []line {
	if len(rows) == 0 {
		return nil
	}
	laid := table(cols, rows)
	lines := laid[:1:1]
	for i, text := range why {
		lines = append(lines, laid[i+1], line{{text: "   " + named(text), style: faint}})
	}
	return lines
}

var looking = line{{text: " Loading ..."}}

// named returns a text, or "-" if it is empty.
func named(text string) string {
	if text == "" {
		return "-"
	}
	return clean(text)
}

// heading returns the number of rows, and how many of them are shown.
func heading(one, many string, shown, total int) line {
	text := " " + plural(max(shown, total), one, many)
	if shown < total {
		text += fmt.Sprintf(", the oldest %d of them:", shown)
	}
	return line{{text, bold}}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
