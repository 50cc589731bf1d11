package port

import (
	"net"
	"testing"
)

// TestFree makes enough calls that random choice alone would return some address twice.
func TestFree(t *testing.T) {
	seen := make(map[string]bool)
	for range 1000 {
		address := For(t)
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
	}
}

func TestFreePassesBy(t *testing.T) {
	turn.Store(7)
	first := For(t)
	l, err := net.Listen("tcp", first)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	turn.Store(7)
	if second := For(t); second == first {
		t.Errorf("%s was returned while in use", first)
	}
}
