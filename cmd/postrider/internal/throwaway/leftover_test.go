package throwaway

import (
	"path/filepath"
	"testing"
)

// TestLeftover starts a server on the folder of one that runs and has nobody left, as where the kernel does not stop it.
func TestLeftover(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	o := Options{Port: 8750, Keep: filepath.Join(shared(t), "kept"), Note: func(text string) { t.Error(text) }}
	left, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer left.end()
	if err := left.place.lock.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	if err := remove(left.place.record); err != nil { // or somebody has emptied the cache
		t.Fatal(err)
	}
	next, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := next.Stop(); err != nil {
			t.Error(err)
		}
	}()
	if !left.HasEnded() {
		t.Error("both run")
	}
	if next.URL != left.URL {
		t.Errorf("it is at %s now, but was at %s", next.URL, left.URL)
	}
	if url, err := Running(); err != nil || url != next.URL {
		t.Errorf("%s, %v", url, err)
	}
}
