package top

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var update = flag.Bool("update", false, "write the golden files")

var start = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

// golden compares a frame with a file in testdata.
func golden(t *testing.T, name string, frame []string) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	got := strings.Join(frame, "\n") + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the frame differs from %s; -update writes it again. It is\n%s", path, got)
	}
}

func deadLetter(feed, key, cause string, attempts int) feeds.Deferred {
	d := feeds.Deferred{Feed: feed, Attempts: attempts, LastError: cause, DeferredAt: start.Add(-2 * time.Hour)}
	d.Key, d.Type = key, "order.placed"
	d.ID = postrider.ID{0x01, 0x98, 15: byte(attempts)}
	return d
}

// busy is a minute of three feeds: one is late and catches up, one is paused, and nobody serves the last.
func busy(inside string) *State {
	s := &State{Name: "schema postrider"}
	for second := range 70 {
		at := start.Add(time.Duration(second) * time.Second)
		pending := 100 * min(second, 70-second)
		n := Snapshot{At: at, Last: int64(1000 + 250*second), Inside: inside}
		n.Feeds = []Feed{
			{Feed: admin.Feed{Name: "billing", Members: 2, Pending: pending, Oldest: at.Add(-time.Duration(pending) * time.Millisecond * 10),
				Dead: 12, Blocked: 61, Deferred: 70}, Retrying: 3},
			{Feed: admin.Feed{Name: "archive", Paused: true, Members: 1, Pending: 1_000_000, Oldest: start.Add(-30 * time.Hour)}},
			{Feed: admin.Feed{Name: "検索-index-with-a-long-name-for-a-feed"}},
		}
		retry := deadLetter("billing", "order/17", "webhook: POST https://example.com/hook: 503 Service Unavailable", 3)
		retry.AvailableAt = at.Add(12 * time.Second)
		n.Blocked = []admin.BlockedKey{
			{Feed: "billing", Key: "order/17", Since: start.Add(-3 * time.Minute), Waiting: 4, Head: retry},
			{Feed: "billing", Key: "kunde/日本語\x1b[31m", Since: start, Waiting: 0, Head: deadLetter("billing", "", "line one\nline two", 10)},
		}
		if inside != "" {
			n.Dead = []feeds.Deferred{deadLetter("billing", "order/4", "too large", 10), deadLetter("billing", "", "", 11)}
		}
		s.Add(n)
	}
	return s
}

func TestFrames(t *testing.T) {
	at := start.Add(69 * time.Second)
	press := func(s *State, keys ...Key) *State {
		for _, k := range keys {
			s.Press(k)
		}
		return s
	}
	failing := busy("")
	failing.Err = "dial tcp 127.0.0.1:5432: connect: connection refused"
	coloured := busy("")
	coloured.Colour = true
	calm := &State{Name: "schema postrider"}
	calm.Add(Snapshot{At: at, Feeds: []Feed{{Feed: admin.Feed{Name: "default", Members: 1}}}})
	for name, f := range map[string]struct {
		state         *State
		width, height int
	}{
		"usual":      {busy(""), 100, 12},
		"wide":       {busy(""), 160, 12},
		"narrow":     {busy(""), 40, 12},
		"low":        {busy(""), 100, 5},
		"whole":      {busy(""), 120, 0},
		"colour":     {coloured, 100, 12},
		"selected":   {press(busy(""), Down, 'j', 'j', Up, '?'), 100, 12},
		"held":       {press(busy(""), 'p'), 100, 12},
		"failing":    {failing, 100, 12},
		"inside":     {press(busy("billing"), Enter), 100, 20},
		"scrolled":   {press(busy("billing"), Enter, Down, Down, Down, Up), 100, 20},
		"opening":    {press(busy(""), Enter), 100, 12},
		"back":       {press(busy("billing"), Enter, Escape), 100, 12},
		"calm":       {calm, 100, 6},
		"no-feed":    {&State{Name: "schema postrider", Snapshot: Snapshot{At: at}}, 100, 6},
		"last-feed":  {press(busy(""), Down, Down), 100, 6},
		"first-look": {busyOnce(), 100, 6},
		"problems":   {press(troubled(), Enter), 100, 14},
	} {
		t.Run(name, func(t *testing.T) {
			golden(t, name, Frame(f.state, f.width, f.height, at))
		})
	}
}

// troubled is a feed whose destination accepts some of the messages.
func troubled() *State {
	s := &State{Name: "schema postrider"}
	s.Add(Snapshot{At: start, Inside: "default", Feeds: []Feed{{Feed: admin.Feed{Name: "default", Members: 1}, Problems: []feeds.Problem{
		{Name: "orders\x1b[31m", Cause: "queue is full:\n10000 messages", Failures: 1234, Since: start.Add(-3 * time.Minute)},
		{Cause: "connection refused", Failures: 1, Since: start.Add(-5 * time.Second)},
	}}}})
	return s
}

func busyOnce() *State {
	s, all := &State{Name: "schema postrider"}, busy("")
	s.Add(all.Snapshot)
	return s
}

// TestFramesFit draws every size that a window can have.
func TestFramesFit(t *testing.T) {
	for _, inside := range []string{"", "billing"} {
		s := busy(inside)
		if inside != "" {
			s.Press(Enter)
		}
		for width := 1; width < 200; width += 3 {
			for height := 1; height < 40; height++ {
				frame := Frame(s, width, height, start)
				if len(frame) != height {
					t.Fatalf("%d lines in a window of %dx%d", len(frame), width, height)
				}
				for _, l := range frame {
					if columns(l) > width {
						t.Fatalf("%d columns in a window of %dx%d: %q", columns(l), width, height, l)
					}
				}
			}
		}
	}
}
