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

// plain is the reference model: the same behavior on a plain list in memory.
type plain struct {
	seen     map[postrider.ID]bool
	deferred []*entry // in the order of arrival
	effects  []string
}

type entry struct {
	postrider.Message
	status   feeds.Status
	blocking bool
}

func (p *plain) head(key string) *entry {
	for _, l := range p.deferred {
		if l.blocking && l.Key == key {
			return l
		}
	}
	return nil
}

// release makes the first message of a key due if it was waiting.
func (p *plain) release(key string) {
	if l := p.head(key); l != nil && l.status == feeds.StatusWaiting {
		l.status = feeds.StatusRetry
	}
}

func (p *plain) remove(l *entry) {
	p.deferred = slices.DeleteFunc(p.deferred, func(x *entry) bool { return x == l })
	if l.blocking {
		p.release(l.Key)
	}
}

func (p *plain) act(act admin.Act, l *entry) bool {
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

// model compares the store with the model over random deliveries, failures, retries and operator
// acts.
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
			step = s.retryOne(p, r.IntN(3))
		case len(p.deferred) > 0:
			l := p.deferred[r.IntN(len(p.deferred))]
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

// deliver delivers a message. If fails is set, the handler fails; if dies is also set, the message
// becomes a dead letter at once.
func (s *scene[Tx]) deliver(p *plain, m postrider.Message, fails, dies bool) string {
	want := inbox.Handled
	switch {
	case p.seen[m.ID]:
		want = inbox.Repeated
	case m.Key != "" && p.head(m.Key) != nil:
		want = inbox.Waiting
		p.deferred = append(p.deferred, &entry{m, feeds.StatusWaiting, true})
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
	back, l := again(1, 0), &entry{m, feeds.StatusRetry, m.Key != ""}
	if dies {
		back, l.status = dead(1), feeds.StatusDead
	}
	p.deferred = append(p.deferred, l)
	s.deferMessage(m, back)
	return step
}

// retryOne retries a message that is due; the attempt succeeds (0), fails (1) or makes it a dead
// letter (2).
func (s *scene[Tx]) retryOne(p *plain, outcome int) (step string) {
	due := slices.ContainsFunc(p.deferred, func(l *entry) bool { return l.status == feeds.StatusRetry })
	a := s.attempt(func(d feeds.Deferred) error {
		at := slices.IndexFunc(p.deferred, func(l *entry) bool { return l.ID == d.ID })
		if at < 0 || p.deferred[at].status != feeds.StatusRetry {
			s.t.Errorf("%q is not due", d.Payload)
			return nil
		}
		l := p.deferred[at]
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
	for _, d := range s.deferred() {
		got = append(got, fmt.Sprint(d.ID, " ", d.Status, " ", d.Blocking && d.Key != ""))
	}
	for _, l := range p.deferred {
		want = append(want, fmt.Sprint(l.ID, " ", l.status, " ", l.blocking))
	}
	if !slices.Equal(got, want) {
		s.t.Errorf("deferred: %q, want %q", got, want)
	}
	if marks := s.Marks(s.ctx); !slices.Equal(marks, p.effects) {
		s.t.Errorf("effects %q, want %q", marks, p.effects)
	}
}
