package bench

import "strconv"

// Result is what a scenario found. Encoded as JSON it is the object that scripts read.
type Result interface {
	// Table returns the same for people: rows of what, how much and the unit.
	Table() [][]string
}

func whole(v float64) string { return strconv.FormatFloat(v, 'f', 0, 64) }

func fraction(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }

func millis(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

func count(v int64) string { return strconv.FormatInt(v, 10) }
