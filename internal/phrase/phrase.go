// Package phrase formats values for the command line and the console.
package phrase

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Age formats a duration in its two largest units.
func Age(d time.Duration) string {
	if d < 0 {
		return "-" + Age(-d)
	}
	s := int(d / time.Second)
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

// Quantity formats a number with the noun that it counts.
func Quantity(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// ShellWord quotes a word for a shell if needed.
func ShellWord(w string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@=,+%", r)
	}
	if w != "" && !strings.ContainsFunc(w, func(r rune) bool { return !plain(r) }) {
		return w
	}
	return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
}

var (
	urlPassword = regexp.MustCompile(`(://[^:@/\s]*:)[^\s"]*@`)
	kvPassword  = regexp.MustCompile(`(?i)((?:password|passwd|secret|token)\s*=\s*)('(?:[^'\\]|\\.)*'|"[^"]*"|[^\s&'"` + "`" + `,;]+)`)
)

// WithoutPasswords hides what looks like a password, for texts that may contain an address.
func WithoutPasswords(text string) string {
	text = urlPassword.ReplaceAllString(text, "${1}xxxxx@")
	return kvPassword.ReplaceAllString(text, "${1}xxxxx")
}
