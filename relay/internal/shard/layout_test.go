package shard

import (
	"testing"

	"github.com/postrider/postrider/internal/layout"
)

// TestPure: the machine has no goroutine, clock, lock or I/O, and imports nothing that has. No file
// refers to an earlier one.
func TestPure(t *testing.T) {
	p := layout.Load(t)
	p.Uses([]string{
		"cmp", "errors", "fmt", "hash/maphash", "math", "math/bits", "slices", "sort", "strings", "time", "github.com/postrider/postrider",
		"github.com/postrider/postrider/store/feeds", "github.com/postrider/postrider/retry", // have none either
	}, "time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer", "time.Sleep", "time.Tick", "time.NewTicker",
		"feeds.Store", "feeds.Feed", "postrider.Publisher")
	p.Structs(19)
	p.ReadsDown()
}
