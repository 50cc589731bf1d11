package relay

import (
	"testing"

	"github.com/postrider/postrider/internal/layout"
)

// TestReadsDown: no file of the package refers to an earlier one of the list in doc.go, and no
// struct has too many fields. Config and Stats are exceptions, because they are lists for users.
func TestReadsDown(t *testing.T) {
	p := layout.Load(t)
	p.ReadsDown()
	p.Structs(19, "Config", "Stats")
}
