package postgres

import "strconv"

// array builds the text form of a PostgreSQL array. This avoids the driver's type lookup and works
// in every protocol mode.
type array struct{ text []byte }

func (a *array) next() {
	if len(a.text) == 0 {
		a.text = append(a.text, '{')
	} else {
		a.text = append(a.text, ',')
	}
}

func (a *array) int(v int64) {
	a.next()
	a.text = strconv.AppendInt(a.text, v, 10)
}

// snapshot appends a snapshot, whose text needs no escaping. An empty one becomes NULL.
func (a *array) snapshot(s string) {
	a.next()
	if s == "" {
		a.text = append(a.text, "NULL"...)
		return
	}
	a.text = append(a.text, '"')
	a.text = append(a.text, s...)
	a.text = append(a.text, '"')
}

// string appends any text. An empty one becomes NULL.
func (a *array) string(s string) {
	a.next()
	if s == "" {
		a.text = append(a.text, "NULL"...)
		return
	}
	a.text = append(a.text, '"')
	for i := range len(s) {
		if s[i] == '"' || s[i] == '\\' {
			a.text = append(a.text, '\\')
		}
		a.text = append(a.text, s[i])
	}
	a.text = append(a.text, '"')
}

// String returns the complete array.
func (a *array) String() string {
	if len(a.text) == 0 {
		return "{}"
	}
	return string(a.text) + "}"
}
