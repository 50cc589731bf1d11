package top

import (
	"fmt"
	"time"

	"github.com/postrider/postrider/internal/phrase"
)

// Frame draws the screen: at most height lines, none wider than width. Without a height it draws
// all lines, and leaves out what only an interactive screen needs.
func Frame(s *State, width, height int, now time.Time) []string {
	lines := []line{s.header(width, now)}
	body := height - 2 // between header and footer
	switch {
	case s.inside:
		details := s.details()
		details = details[min(s.scroll, len(details)):]
		lines = append(append(lines, s.feeds(width, 1, false)...), line{})
		lines = append(lines, details...)
	default:
		blocked := s.blocked()
		rows := len(s.Feeds)
		if height > 0 { // both lists get a part of the screen
			rows = min(rows, max(1, body-2-min(len(blocked), body/3)))
		}
		lines = append(append(lines, s.feeds(width, rows, height > 0)...), line{})
		lines = append(lines, blocked...)
	}
	if height > 0 {
		lines = lines[:min(len(lines), max(1, height-1))]
		for len(lines) < height-1 {
			lines = append(lines, line{})
		}
		if height > 1 {
			lines = append(lines, s.footer())
		}
	}
	texts := make([]string, len(lines))
	for i, l := range lines {
		texts[i] = l.render(width, s.Colour)
	}
	return texts
}

func (s *State) header(width int, now time.Time) line {
	what := plural(len(s.Feeds), "feed", "feeds")
	if s.inside {
		what = "feed " + clean(s.selected)
	}
	left := fmt.Sprintf("postrider top  %s  %s", clean(s.Name), what)
	right, style := now.UTC().Format("2006-01-02 15:04:05Z"), ""
	switch {
	case s.Err != "":
		right, style = fmt.Sprintf("no answer for %s: %s", phrase.Age(now.Sub(s.At)), clean(s.Err)), red
	case s.Held:
		right, style = "paused since "+s.At.UTC().Format("15:04:05Z"), yellow
	}
	right = clip(right, width-columns(left)-2)
	return line{{left, bold}, {text: pad("", max(0, width-columns(left)-columns(right)))}, {right, style}}
}

func (s *State) footer() line {
	if !s.help {
		return line{{"?: keys", faint}}
	}
	return line{{"q: quit  up/down: select  enter: details  esc: back  p: pause or resume  IN/S, OUT/S: estimates", faint}}
}
