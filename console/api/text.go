package api

import (
	"fmt"
	"strings"
	"time"
)

// quantity is a number and what it counts.
func quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// age is a duration in its two largest units.
func age(d time.Duration) string {
	s := int(max(0, d) / time.Second)
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 60*60:
		return fmt.Sprintf("%dm%ds", s/60, s%60)
	case s < 24*60*60:
		return fmt.Sprintf("%dh%dm", s/3600, s/60%60)
	}
	return fmt.Sprintf("%dd%dh", s/86400, s/3600%24)
}

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
