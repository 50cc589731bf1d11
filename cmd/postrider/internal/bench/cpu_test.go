package bench

import (
	"testing"
	"time"
)

func TestParseSchedstat(t *testing.T) {
	if d, err := parseSchedstat("1234567 89 10\n"); err != nil || d != 1234567*time.Nanosecond {
		t.Errorf("%v, %v", d, err)
	}
	for _, text := range []string{"", "1 2", "x 2 3"} {
		if d, err := parseSchedstat(text); err == nil {
			t.Errorf("%q: %v", text, d)
		}
	}
}

// TestOwnTime: work is seen at once, not only at the next tick.
func TestOwnTime(t *testing.T) {
	before, ok := ownTime()
	if !ok {
		t.Skip("n/a: this system does not tell")
	}
	for end := time.Now().Add(time.Minute); ; {
		if now, _ := ownTime(); now >= before+time.Millisecond {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no processor time is seen")
		}
	}
}
