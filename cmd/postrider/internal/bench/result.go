package bench

import "strconv"

// Result is the result of a scenario. Scripts read its JSON.
type Result interface {
	// Table returns the result as rows for people: what, how much, and the unit.
	Table() [][]string
}

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func fraction(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func millis(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func count(v int64) string { return strconv.FormatInt(v, 10) }
