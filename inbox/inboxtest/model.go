package inboxtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/feeds"
)

// plain is the dumb model: what a consumer with a list and a lot of time would do.
type plain struct {
	seen    map[postrider.ID]bool
	aside   []*letter // in the order of arrival
	effects []string
}

type letter struct {
	postrider.Message
	status   feeds.Status
	blocking bool
}

func (p *plain) head(key string) *letter {
	for _, l := range p.aside {
		if l.blocking && l.Key == key {
			return l
		}
	}
	return nil
}

// release has the first of a key go, once nothing is before it.
func (p *plain) release(key string) {
	if l := p.head(key); l != nil && l.status == feeds.StatusWaiting {
		l.status = feeds.StatusRetry
	}
}

func (p *plain) remove(l *letter) {
	p.aside = slices.DeleteFunc(p.aside, func(x *letter) bool { return x == l })
	if l.blocking {
		p.release(l.Key)
	}
}

func (p *plain) act(act admin.Act, l *letter) bool {
	if !slices.Contains(act.From(), l.status) {
		return false
	}
	switch was := l.blocking; act {
	case admin.Retry:
		l.status = feeds.StatusRetry
	case admin.Skip, admin.Park:
		l.status, l.blocking = feeds.StatusDead, false
		if act == admin.Park {
			l.status = feeds.StatusParked
		}
		if was {
			p.release(l.Key)
		}
	case admin.Discard:
		p.remove(l)
	}
	return true
}

// model compares the store with the model over random deliveries, failures, retries and acts of an operator.
func model[Tx any](s *scene[Tx]) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	p := &plain{seen: make(map[postrider.ID]bool)}
	count, steps := 24, 150
	if need.IsLong() {
		count, steps = 300, 3000
	}
	var msgs []postrider.Message
	for i := range count {
		key := ""
		if k := r.IntN(4); k > 0 {
			key = fmt.Sprint("k", k)
		}
		msgs = append(msgs, message(key, fmt.Sprint(i)))
	}
	var story []string
	for range steps {
		var step string
		switch n := r.IntN(10); {
		case n < 4:
			step = s.deliver(p, msgs[r.IntN(len(msgs))], r.IntN(2) == 0, r.IntN(4) == 0)
		case n < 7:
			step = s.tryAgain(p, r.IntN(3))
		case len(p.aside) > 0:
			l := p.aside[r.IntN(len(p.aside))]
			act := []admin.Act{admin.Retry, admin.Retry, admin.Skip, admin.Park, admin.Discard}[r.IntN(5)]
			step = fmt.Sprint(act, " ", string(l.Payload))
			n, err := s.DeadLetters.Act(s.ctx, operator, act, admin.Filter{Feed: inbox.Feed(consumer), ID: l.ID}, 0)
			if done := p.act(act, l); err != nil || (n == 1) != done {
				s.t.Errorf("%s: %d, %v, want %v", step, n, err, done)
			}
		}
		story = append(story, step)
		s.compare(p)
		if s.t.Failed() {
			s.t.Fatalf("seed %d: %q", seed, story)
		}
	}
}

// deliver has a message come, and fail, and be a dead letter at once.
func (s *scene[Tx]) deliver(p *plain, m postrider.Message, fails, dies bool) string {
	want := inbox.Handled
	switch {
	case p.seen[m.ID]:
		want = inbox.Repeated
	case m.Key != "" && p.head(m.Key) != nil:
		want = inbox.Waiting
		p.aside = append(p.aside, &letter{m, feeds.StatusWaiting, true})
	}
	p.seen[m.ID] = true
	msgs := []postrider.Message{m}
	v, err := s.Store.Handle(s.ctx, consumer, msgs, false, func(ctx context.Context, tx Tx, fresh []int) error {
		if fails {
			return errWork
		}
		return s.marking(msgs)(ctx, tx, fresh)
	})
	step := fmt.Sprintf("deliver %s of %s: %v, %v", m.Payload, m.Key, v, err)
	if want != inbox.Handled || !fails {
		if err != nil || v[0] != want {
			s.t.Errorf("%s, want %s", step, want)
		}
		if want == inbox.Handled {
			p.effects = append(p.effects, string(m.Payload))
		}
		return step
	}
	if !errors.Is(err, errWork) {
		s.t.Errorf("%s, want a failure", step)
	}
	back, l := again(1, 0), &letter{m, feeds.StatusRetry, m.Key != ""}
	if dies {
		back, l.status = dead(1), feeds.StatusDead
	}
	p.aside = append(p.aside, l)
	s.shelve(m, back)
	return step
}

// tryAgain has a message that is due succeed (0), fail (1) or die (2).
func (s *scene[Tx]) tryAgain(p *plain, outcome int) (step string) {
	due := slices.ContainsFunc(p.aside, func(l *letter) bool { return l.status == feeds.StatusRetry })
	a := s.attempt(func(d feeds.Deferred) error {
		at := slices.IndexFunc(p.aside, func(l *letter) bool { return l.ID == d.ID })
		if at < 0 || p.aside[at].status != feeds.StatusRetry {
			s.t.Errorf("%q is not due", d.Payload)
			return nil
		}
		l := p.aside[at]
		if l.blocking && p.head(l.Key) != l {
			s.t.Errorf("%q overtakes", d.Payload)
		}
		step = fmt.Sprintf("retry %s: %d", d.Payload, outcome)
		switch outcome {
		case 0:
			p.effects = append(p.effects, string(l.Payload))
			p.remove(l)
			return nil
		case 2:
			l.status = feeds.StatusDead
		}
		return errWork
	}, func(d feeds.Deferred, _ error) inbox.Deferral {
		if outcome == 2 {
			return dead(d.Attempts + 1)
		}
		return again(d.Attempts+1, 0)
	})
	if a.Found != due {
		s.t.Errorf("found %v, want %v", a.Found, due)
	}
	return step
}

func (s *scene[Tx]) compare(p *plain) {
	s.t.Helper()
	var got, want []string
	for _, d := range s.aside() {
		got = append(got, fmt.Sprint(d.ID, " ", d.Status, " ", d.Blocking && d.Key != ""))
	}
	for _, l := range p.aside {
		want = append(want, fmt.Sprint(l.ID, " ", l.status, " ", l.blocking))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("deferred: %q, want %q", got, want)
	}
	if marks := s.Marks(s.ctx); !slices.Equal(marks, p.effects) {
		s.t.Errorf("effects %q, want %q", marks, p.effects)
	}
}
