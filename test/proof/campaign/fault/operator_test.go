package fault_test

import (
	"fmt"
	"strings"
)

var operatorChecks = map[string]func(s *scene){
	"operator-pause":  (*scene).paused,
	"operator-rewind": (*scene).rewound,
	"operator-replay": (*scene).replayed,
	"operator-shards": (*scene).resharded,
}

// served waits until relays have created their feeds.
func (s *scene) served() {
	s.Helper()
	s.eventually("there are feeds", func() bool {
		return s.ask("SELECT count(*)::text FROM postrider.feeds") == fmt.Sprint(len(s.Destinations()))
	})
}

func (s *scene) paused() {
	s.served()
	r := s.begin("operator-pause", "")
	is := fmt.Sprintf("SELECT paused::text FROM postrider.feeds WHERE name = '%s'", r.Target)
	s.expect(is, "true")
	s.heal(r)
	s.expect(is, "false")
}

// enqueue writes a message for each destination, and waits until they are delivered. The stand-in
// for the receiver accepts everything.
func (s *scene) enqueue() {
	s.served()
	for _, d := range s.Destinations() {
		if out, err := s.Postrider(s.Context(), "enqueue", "campaign.fact", "--topic", d, "--key", "k", "--payload", "{}"); err != nil {
			s.Fatal(out, err)
		}
	}
	s.eventually("they are delivered", func() bool {
		return s.ask("SELECT coalesce(sum(p.pending), 0)::text FROM postrider.feeds f CROSS JOIN LATERAL postrider.pending(f.name, 10) p") == "0"
	})
}

func (s *scene) rewound() {
	s.enqueue()
	r := s.begin("operator-rewind", "")
	s.heal(r)
	if want := fmt.Sprintf("%d messages", r.Again); !strings.HasPrefix(r.Detail, want) || r.Again == 0 {
		s.Errorf("%s; %d were asked for", r.Detail, r.Again)
	}
}

func (s *scene) replayed() {
	s.enqueue()
	r := s.begin("operator-replay", "")
	s.heal(r)
	if r.Again == 0 {
		s.Errorf("%s; none was asked for", r.Detail)
	}
}

func (s *scene) resharded() {
	s.served()
	r := s.begin("operator-shards", "")
	has := fmt.Sprintf("SELECT shards::text FROM postrider.feeds WHERE name = '%s'", r.Target)
	var to, before int
	if _, err := fmt.Sscanf(r.Detail, "%d shards instead of %d", &to, &before); err != nil {
		s.Fatal(r.Detail, err)
	}
	s.expect(has, fmt.Sprint(to))
	s.heal(r)
	s.expect(has, fmt.Sprint(before))
}
