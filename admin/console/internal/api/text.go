package api

import "strings"

// longest is the maximum length of an error that is shown, in bytes.
const longest = 4 << 10

func cut(text string) string {
	if len(text) <= longest {
		return text
	}
	return strings.ToValidUTF8(text[:longest], "") + "…"
}

// shown returns an error without secrets, cut to a maximum length.
func (s *Server) shown(text string) string { return cut(s.scrub(text)) }

// byName converts counts for JSON.
func byName[S ~string](counts map[S]int) map[string]int {
	out := make(map[string]int, len(counts))
	for name, n := range counts {
		out[string(name)] = n
	}
	return out
}
