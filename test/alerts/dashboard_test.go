package alerts_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/postrider/postrider/test/alerts/dashboard"
)

func TestDashboardIsWhatIsMade(t *testing.T) {
	want, err := dashboard.JSON()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(boardFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what test/alerts/dashboard makes (%v); run go generate there", boardFile, err)
	}
}

func TestDashboardUsesWhatIsExported(t *testing.T) {
	for _, q := range dashboard.Queries() {
		checkNames(t, q, q)
	}
	for _, link := range dashboard.Runbooks() {
		checkLink(t, "dashboard", link)
	}
}

// TestDashboardFits checks that panels do not overlap and have unique IDs.
func TestDashboardFits(t *testing.T) {
	text, err := dashboard.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			ID      int
			Title   string
			GridPos struct{ H, W, X, Y int }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	ids := make(map[int]bool)
	taken := make(map[[2]int]string)
	for _, p := range board.Panels {
		if ids[p.ID] {
			t.Errorf("%s: another panel has number %d too", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%s lies upon %s, or beyond the edge", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
	}
}
