package top

import (
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
)

func TestRates(t *testing.T) {
	type look struct {
		after   time.Duration
		last    int64
		pending int
	}
	for name, c := range map[string]struct {
		looks []look
		want  rates
	}{
		"one look":            {[]look{{0, 10, 0}}, rates{-1, -1}},
		"all delivered":       {[]look{{0, 100, 0}, {time.Second, 150, 0}}, rates{50, 50}},
		"falls behind":        {[]look{{0, 100, 0}, {2 * time.Second, 300, 40}}, rates{100, 80}},
		"catches up":          {[]look{{0, 100, 90}, {time.Second, 100, 30}}, rates{0, 60}},
		"rewound":             {[]look{{0, 100, 0}, {time.Second, 100, 70}}, rates{0, 0}},
		"was empty":           {[]look{{0, 0, 0}, {time.Second, 5000, 1}}, rates{-1, -1}},
		"numbers start over":  {[]look{{0, 100, 0}, {time.Second, 5, 0}}, rates{-1, -1}},
		"more than counted":   {[]look{{0, 100, 1_000_000}, {time.Second, 200, 1_000_000}}, rates{100, -1}},
		"over five seconds":   {[]look{{0, 1, 0}, {time.Second, 100, 0}, {4 * time.Second, 200, 0}, {6 * time.Second, 600, 0}}, rates{100, 100}},
		"seldom":              {[]look{{0, 100, 0}, {50 * time.Second, 600, 0}}, rates{10, 10}},
		"the clock went back": {[]look{{time.Second, 100, 0}, {0, 200, 0}}, rates{-1, -1}},
	} {
		t.Run(name, func(t *testing.T) {
			var s State
			for _, l := range c.looks {
				s.Add(Snapshot{At: start.Add(l.after), Last: l.last, Feeds: []Feed{{Feed: admin.Feed{Name: "f", Pending: l.pending}}}})
			}
			if got := s.rates(&s.Feeds[0]); got != c.want {
				t.Errorf("rates %v, want %v", got, c.want)
			}
		})
	}
}

// TestAFeedThatGoes takes away the feed that is looked into.
func TestAFeedThatGoes(t *testing.T) {
	s := busy("")
	s.Press(Down)
	s.Press(Enter)
	if s.Wanted() != "archive" {
		t.Fatalf("looks into %q", s.Wanted())
	}
	n := s.Snapshot
	n.At, n.Feeds = n.At.Add(time.Second), n.Feeds[:1]
	s.Add(n)
	if s.Wanted() != "" || s.selected != "billing" {
		t.Errorf("looks into %q, %q is selected", s.Wanted(), s.selected)
	}
	s.Add(Snapshot{At: n.At.Add(time.Second)})
	for _, k := range []Key{Up, Down, Enter} {
		s.Press(k)
	}
	if s.Wanted() != "" {
		t.Errorf("looks into %q", s.Wanted())
	}
	if !s.Press('q') || !s.Press(Interrupt) {
		t.Error("it does not end")
	}
}

func TestKeys(t *testing.T) {
	for sent, want := range map[string]struct {
		keys []Key
		rest string
	}{
		"jq\r\n":               {[]Key{'j', 'q', Enter, Enter}, ""},
		"\x1b[A\x1bOBk":        {[]Key{Up, Down, 'k'}, ""},
		"\x1b":                 {nil, "\x1b"},
		"j\x1b[":               {[]Key{'j'}, "\x1b["},
		"\x1bq":                {[]Key{Escape, 'q'}, ""},
		"\x1b\x1b[B":           {[]Key{Escape, Down}, ""},
		"\x1b[3~\x1b[1;5A\x03": {[]Key{Up, Interrupt}, ""},
	} {
		keys, rest := Keys([]byte(sent))
		if !slices.Equal(keys, want.keys) || string(rest) != want.rest {
			t.Errorf("%q: keys %v and %q, want %v and %q", sent, keys, rest, want.keys, want.rest)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "ab…"}, {"abcd", 1, "…"}, {"abcd", 0, ""}, {"abcd", -1, ""},
		{"日本語", 6, "日本語"}, {"日本語", 5, "日本…"}, {"日本語", 4, "日…"}, {"e\u0301e\u0301e\u0301", 2, "e\u0301…"},
	} {
		if got := clip(c.text, c.width); got != c.want {
			t.Errorf("%q in %d columns: %q, want %q", c.text, c.width, got, c.want)
		}
	}
}
