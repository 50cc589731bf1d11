package lease

import (
	"testing"
	"time"
)

func at(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }

func TestWatch(t *testing.T) {
	type look struct {
		at   float64
		s    Sight
		take bool
	}
	held := func(version string) Sight { return Sight{Version: version} }
	for name, looks := range map[string][]look{
		"free":            {{0, Sight{Free: true}, true}},
		"released":        {{0, held("1"), false}, {1, Sight{Free: true, Version: "2"}, true}},
		"renewed":         {{0, held("1"), false}, {9, held("2"), false}, {18, held("3"), false}, {27.9, held("3"), false}, {28, held("3"), true}},
		"silent":          {{0, held("1"), false}, {9.9, held("1"), false}, {10, held("1"), true}},
		"seen late":       {{0, held("1"), false}, {30, held("2"), false}, {39, held("2"), false}, {40, held("2"), true}},
		"taken back":      {{0, held("5"), false}, {9, held("3"), false}, {12, held("3"), false}, {19, held("3"), true}},
		"ended by itself": {{0, Sight{}, false}, {100, Sight{}, false}, {101, Sight{Free: true}, true}},
		"a longer lease": {
			{0, Sight{Version: "1", Length: 20 * time.Second}, false}, {19, Sight{Version: "1", Length: 20 * time.Second}, false},
			{20, Sight{Version: "1", Length: 20 * time.Second}, true},
		},
		"another is first": {{0, held("1"), false}, {10, held("1"), true}, {10.1, held("2"), false}, {20, held("2"), false}, {20.1, held("2"), true}},
	} {
		w := watch{length: 10 * time.Second}
		for _, l := range looks {
			if got := w.looked(l.s, at(l.at)); got != l.take {
				t.Errorf("%s: at %v s of %+v: take is %v", name, l.at, l.s, got)
			}
		}
	}
}

func TestGrant(t *testing.T) {
	const (
		extend = iota // at sent, answered at now
		holds         // at now
	)
	type step struct {
		what      int
		sent, now float64
		want      bool
	}
	for name, steps := range map[string][]step{
		"counted from before it was sent": {{extend, 0, 3, true}, {holds, 0, 8.9, true}, {holds, 0, 9, false}},
		"renewed":                         {{extend, 0, 1, true}, {extend, 5, 6, true}, {holds, 0, 13.9, true}, {holds, 0, 14, false}},
		"answered too late":               {{extend, 0, 9, false}, {holds, 0, 9, false}},
		"a renewal that is answered late": {{extend, 0, 1, true}, {extend, 8, 9.5, false}, {holds, 0, 10, false}},
		"never after it was over":         {{extend, 0, 1, true}, {holds, 0, 20, false}, {extend, 20, 20, false}, {holds, 0, 20, false}},
		"over by a clock that was behind": {{extend, 0, 1, true}, {holds, 0, 9, false}, {extend, 8, 8.5, false}},
	} {
		g := grant{length: 10 * time.Second}
		for i, s := range steps {
			var got bool
			if s.what == extend {
				got = g.extend(at(s.sent), at(s.now))
			} else {
				got = g.holds(at(s.now))
			}
			if got != s.want {
				t.Errorf("%s: step %d is %v", name, i, got)
			}
		}
	}
}
