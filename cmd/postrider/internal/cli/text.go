package cli

import (
	"fmt"
	"os"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider/internal/phrase"
)

// wantsColour reports whether the standard output is a terminal with colours, and the user has not
// turned them off.
func wantsColour(s streams) bool {
	out, ok := s.out.(*os.File)
	return ok && isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Colours of text. All codes have the same length, so that columns stay aligned where every cell has one.
const (
	plain  = 39
	red    = 31
	green  = 32
	yellow = 33
)

func (a *app) paint(colour int, text string) string {
	if !a.colours {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}

// listing prints rows under their titles, with colours in one column. It prints nothing if there
// are no rows.
func (a *app) listing(titles []string, rows [][]string, column string, colour func(cell string) int) error {
	if len(rows) == 0 {
		return nil
	}
	for i, title := range titles {
		if title == column {
			for _, row := range rows {
				row[i] = a.paint(colour(row[i]), row[i])
			}
			titles[i] = a.paint(plain, title)
		}
	}
	return a.table(append([][]string{titles}, rows...))
}

const cellWidth = 40

// cell formats a value for a table: on one line, truncated unless wide, and without control
// characters.
func cell(text string, wide bool) string {
	text = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return ' '
		}
		return visible(r)
	}, text)
	if text == "" {
		return "-"
	}
	if !wide && utf8.RuneCountInString(text) > cellWidth {
		text = string([]rune(text)[:cellWidth-1]) + "…"
	}
	return text
}

// cell formats a value of a list with the flag --wide. It does not truncate output to a file or
// another program.
func (a *app) cell(text string, wide bool) string { return cell(text, wide || !a.narrow) }

// visible replaces characters that are not printable, such as those that control a terminal.
func visible(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return '\uFFFD'
}

// ago returns the age of a time, or "-" if it is zero.
func ago(t, now time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return phrase.Age(now.Sub(t))
}

// moment formats a time, or returns "" if it is zero.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
