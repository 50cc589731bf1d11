package main

import (
	"slices"
	"testing"
)

// The hash of a published go.mod, from our own go.sum.
func TestHash(t *testing.T) {
	t.Parallel()
	if got := hash1(map[string][]byte{"go.mod": []byte("module github.com/google/uuid\n")}); got != "h1:TIyPZe4MgqvfeYDBFedMoGGpEw/LqOeaOT+nhxU+yHo=" {
		t.Error(got)
	}
}

func TestArchived(t *testing.T) {
	t.Parallel()
	files := []string{"LICENSE", "go.mod", "a.go", "store/go.mod", "store/s.go", "store/sub/s.go", "store/vendor/v.go", "storey/x.go", "store/inner/go.mod", "store/inner/i.go"}
	for dir, want := range map[string][]string{
		".":           {"LICENSE", "go.mod", "a.go", "storey/x.go"},
		"store":       {"store/go.mod", "store/s.go", "store/sub/s.go"},
		"store/inner": {"store/inner/go.mod", "store/inner/i.go"},
	} {
		if got := archived(dir, files); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}
