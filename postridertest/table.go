package postridertest

import (
	"bytes"
	"maps"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/postrider/postrider"
)

// table formats rows in columns. It leaves out columns without content.
func table(head []string, rows [][]string) string {
	if len(rows) == 0 {
		return ""
	}
	width := make([]int, len(head))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
		}
	}
	var b strings.Builder
	line := func(row []string) {
		var text strings.Builder
		for i, cell := range row {
			if width[i] == 0 {
				continue
			}
			w := max(width[i], utf8.RuneCountInString(head[i]))
			text.WriteString("  " + cell + strings.Repeat(" ", w-utf8.RuneCountInString(cell)))
		}
		b.WriteString(strings.TrimRight(text.String(), " ") + "\n")
	}
	line(head)
	for _, row := range rows {
		line(row)
	}
	return b.String()
}

// numbered prepends a number to each row.
func numbered(rows [][]string) [][]string {
	for i := range rows {
		rows[i] = append([]string{strconv.Itoa(i + 1)}, rows[i]...)
	}
	return rows
}

const shortLimit = 80

// short returns bytes as text that fits into one line.
func short(text []byte) string {
	s := string(text)
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		s = strconv.Quote(s)
	}
	if runes := []rune(s); len(runes) > shortLimit {
		s = string(runes[:shortLimit]) + "…"
	}
	return s
}

func copyMessage(m postrider.Message) postrider.Message {
	m.Payload = bytes.Clone(m.Payload)
	m.Headers = maps.Clone(m.Headers)
	return m
}
