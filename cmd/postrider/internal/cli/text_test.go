package cli

import (
	"testing"
	"time"
)

func TestCell(t *testing.T) {
	t.Parallel()
	long := "0123456789012345678901234567890123456789x"
	for text, want := range map[string]string{
		"":                  "-",
		"a\nb\tc":           "a b c",
		"\x1b[2Jgone\u202e": "\uFFFD[2Jgone\uFFFD",
		long:                long[:39] + "…",
	} {
		if got := cell(text, false); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if cell(long, true) != long {
		t.Error("cut although wide")
	}
}

func TestParseTime(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Time{
		"":                     {},
		"2h":                   now.Add(-2 * time.Hour),
		"7d":                   now.AddDate(0, 0, -7),
		"2026-01-31T12:00:00Z": time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC),
	} {
		if got, err := parseTime(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"-2h", "soon", "2026-01-31", "-1d"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("%q: %s", text, got)
		}
	}
}
