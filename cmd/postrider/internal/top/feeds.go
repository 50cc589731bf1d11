package top

import (
	"strconv"
	"time"

	"github.com/postrider/postrider/internal/phrase"
)

// feeds returns the table of feeds with at most the given number of rows, including the selected
// feed. It marks the selected feed if mark is set.
func (s *State) feeds(width, rows int, mark bool) []line {
	if len(s.Feeds) == 0 {
		return []line{{{text: " There is no feed yet."}}}
	}
	// The width of all columns but the name, and the minimum width of the chart.
	const others, shortest = 76, 12
	cols := []column{
		{"FEED", 8, min(max(12, width-others-shortest), 24), false}, {"STATE", 8, -1, false}, {"RELAYS", 6, -1, true},
		{"PENDING", 8, -1, true}, {"LAG", 6, -1, true}, {"IN/S", 6, -1, true}, {"OUT/S", 6, -1, true}, {"RETRY", 5, -1, true}, {"DEAD", 5, -1, true}, {"BLOCKED", 7, -1, true},
	}
	from := min(max(0, s.index()-rows+1), len(s.Feeds))
	shown := s.Feeds[from:min(from+rows, len(s.Feeds))]
	if s.inside {
		shown = s.Feeds[s.index() : s.index()+1]
	}
	cells := make([][]span, len(shown))
	for i := range shown {
		cells[i] = s.feed(&shown[i])
	}
	lines := table(cols, cells)
	// The rest of the width shows a chart of the last minute.
	left := min(width-lines[0].columns()-2, int(remembered/time.Second))
	if left >= shortest-2 {
		lines[0] = append(lines[0], span{"  LAG, 1 MIN", bold})
	}
	for i := range shown {
		l := lines[i+1]
		if left >= shortest-2 {
			l = append(l, span{text: "  " + sparkline(s.lags(shown[i].Name, left))})
		}
		if mark && shown[i].Name == s.selected {
			l[0].text = ">"
			l[1].style = reverse
		}
		lines[i+1] = l
	}
	return lines
}

func (s *State) feed(f *Feed) []span {
	r := s.rates(f)
	standing := span{f.Standing(), red}
	switch standing.text {
	case "ok":
		standing.style = green
	case "paused":
		standing.style = yellow
	}
	pending := strconv.Itoa(f.Pending)
	if f.Pending >= countedTo {
		pending += "+"
	}
	return []span{
		{text: clean(f.Name)}, standing, {text: strconv.Itoa(f.Members)}, {text: pending}, {text: phrase.Age(max(0, f.Lag(s.At)))},
		{text: rate(r.in)}, {text: rate(r.out)}, alarm(f.Retrying, yellow), alarm(f.Dead, red), alarm(f.Blocked, red),
	}
}

// alarm returns a number, with a style if it is not 0.
func alarm(n int, style string) span {
	if n == 0 {
		style = ""
	}
	return span{strconv.Itoa(n), style}
}
