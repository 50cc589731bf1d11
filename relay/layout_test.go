package relay

import (
	"testing"

	"github.com/postrider/postrider/internal/layout"
)

// TestReadsDown: the files of the package read from top to bottom, and nothing in it has more parts than a reader can keep in
// mind. Config and Stats are lists for users.
func TestReadsDown(t *testing.T) {
	p := layout.Load(t)
	p.ReadsDown()
	p.Structs(19, "Config", "Stats")
}
