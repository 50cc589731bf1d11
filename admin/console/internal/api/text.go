package api

import "strings"

// longest is how much of an error is shown.
const longest = 4 << 10

func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// shown is an error as it is shown to all: without secrets, and not too long.
func (s *Server) shown(text string) string { return cut(s.scrub(text)) }

// byName are counts as JSON has them.
func byName[S ~string](counts map[S]int) map[string]int {
	out := make(map[string]int, len(counts))
	for name, n := range counts {
		out[string(name)] = n
	}
	return out
}
