package inboxtest

import "github.com/postrider/postrider/admin"

// heartbeats sends heartbeats for one consumer: operators see the last one, and none for another
// consumer.
func heartbeats[Tx any](s *scene[Tx]) {
	const other = "shipping"
	if _, err := s.Store.Open(s.ctx, other); err != nil {
		s.t.Fatal(err)
	}
	before := s.standing(consumer)
	if !before.Heard.IsZero() || before.Gone(before.Created.AddDate(0, 0, 1)) != 0 {
		s.t.Errorf("before the first heartbeat: %+v", before)
	}
	for _, process := range []string{"host:1", "host:2"} {
		if err := s.Store.Heard(s.ctx, consumer, process); err != nil {
			s.t.Fatal(err)
		}
	}
	c := s.standing(consumer)
	if c.Process != "host:2" || c.Heard.Before(before.Created) || c.Gone(c.Heard) != 0 {
		s.t.Errorf("got %+v, want host:2, just now", c)
	}
	if c := s.standing(other); !c.Heard.IsZero() || c.Process != "" {
		s.t.Errorf("the other consumer: %+v", c)
	}
}

func (s *scene[Tx]) standing(name string) *admin.ConsumerStanding {
	all, err := s.Gauges.Gauges(s.ctx)
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range all.Consumers {
		if c := &all.Consumers[i]; c.Name == name {
			return c
		}
	}
	s.t.Fatalf("no consumer %s in %+v", name, all.Consumers)
	return nil
}
