package top

// column is a column of a table. It is as wide as its widest cell, within limits.
type column struct {
	title    string
	min, max int // a negative max is no limit
	right    bool
}

// table formats rows below their titles.
func table(cols []column, rows [][]span) []line {
	titles := make([]span, len(cols))
	widths := make([]int, len(cols))
	for i, c := range cols {
		titles[i] = span{c.title, bold}
		widths[i] = max(c.min, columns(c.title))
		for _, row := range rows {
			widths[i] = max(widths[i], columns(row[i].text))
		}
		if c.max >= 0 {
			widths[i] = min(widths[i], max(c.max, c.min))
		}
	}
	lines := make([]line, 0, len(rows)+1)
	for _, row := range append([][]span{titles}, rows...) {
		l := line{{text: " "}}
		for i, cell := range row {
			text := clip(cell.text, widths[i])
			switch last := i == len(row)-1; {
			case cols[i].right:
				text = pad(text, -widths[i])
			case !last:
				text = pad(text, widths[i])
			}
			if i > 0 {
				l = append(l, span{text: "  "})
			}
			l = append(l, span{text, cell.style})
		}
		lines = append(lines, l)
	}
	return lines
}
