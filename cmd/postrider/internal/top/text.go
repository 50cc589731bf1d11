package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"
)

// span is a part of a line with one style.
type span struct {
	text  string
	style string // a parameter of the escape sequence; empty: none
}

const (
	bold    = "1"
	faint   = "2"
	reverse = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
)

type line []span

// render formats the line, cut to a width.
func (l line) render(width int, colour bool) string {
	var b strings.Builder
	for _, s := range l {
		text := clip(s.text, width)
		width -= columns(text)
		if colour && s.style != "" && text != "" {
			text = "\x1b[" + s.style + "m" + text + "\x1b[0m"
		}
		b.WriteString(text)
	}
	if colour {
		return b.String()
	}
	return strings.TrimRight(b.String(), " ")
}

func (l line) columns() int {
	n := 0
	for _, s := range l {
		n += columns(s.text)
	}
	return n
}

// clean replaces characters that are not printable, such as those that control a terminal.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return '\uFFFD'
	}, text)
}

// clip shortens a text that is wider than width.
func clip(text string, width int) string {
	if columns(text) <= width {
		return text
	}
	if width <= 0 {
		return ""
	}
	used := 0
	for i, r := range text {
		if used += runeColumns(r); used > width-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// pad pads a text to width, on its left if width is negative.
func pad(text string, width int) string {
	if width < 0 {
		return strings.Repeat(" ", max(0, -width-columns(text))) + text
	}
	return text + strings.Repeat(" ", max(0, width-columns(text)))
}

func columns(text string) int {
	n := 0
	for _, r := range text {
		n += runeColumns(r)
	}
	return n
}

// wide are the characters that are two columns wide.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1}, {0x2e80, 0x303e, 1}, {0x3041, 0xa4cf, 1}, {0xa960, 0xa97c, 1}, {0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1}, {0xfe30, 0xfe6f, 1}, {0xff00, 0xff60, 1}, {0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{{0x1f300, 0x1f64f, 1}, {0x1f680, 0x1f6ff, 1}, {0x1f900, 0x1faff, 1}, {0x20000, 0x3fffd, 1}},
}

func runeColumns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

func rate(r float64) string {
	switch {
	case r < 0:
		return "-"
	case r > 0 && r < 9.95:
		return fmt.Sprintf("%.1f", r)
	}
	return fmt.Sprintf("%.0f", r)
}

// fullBar is the minimum lag for a bar of full height.
const fullBar = 5 * time.Second

// sparkline draws a bar for each value that is not negative.
func sparkline(values []time.Duration) string {
	full := fullBar
	for _, v := range values {
		full = max(full, v)
	}
	bars := []rune("▁▂▃▄▅▆▇█")
	line := make([]rune, len(values))
	for i, v := range values {
		line[i] = ' '
		if v >= 0 {
			line[i] = bars[int(float64(v)/float64(full)*float64(len(bars)-1)+0.5)]
		}
	}
	return string(line)
}
