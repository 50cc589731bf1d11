package postridertest

import (
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// Publisher returns a publisher with faults, for a relay to use in place of pub. It keeps order,
// and has names, if pub does. A relay cannot ask it what has arrived, because the repetitions that
// follow a fault are what consumers are tested with.
func (in *Injector) Publisher(pub postrider.Publisher) postrider.Publisher {
	return &faultyPublisher{in, pub}
}

type faultyPublisher struct {
	in  *Injector
	pub postrider.Publisher
}

func (p *faultyPublisher) KeepsOrder() bool {
	k, ok := p.pub.(broker.OrderKeeper)
	return ok && k.KeepsOrder()
}

func (p *faultyPublisher) NameOf(m *postrider.Message) string { return nameOf(p.pub, m) }

// nameOf returns the name that pub has for m; empty if it has none.
func nameOf(pub postrider.Publisher, m *postrider.Message) string {
	if n, ok := pub.(broker.Namer); ok {
		return n.NameOf(m)
	}
	return ""
}

func (p *faultyPublisher) Close() error { return p.pub.Close() }

// Publish implements [postrider.Publisher].
func (p *faultyPublisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	in := p.in
	process := in.current()
	if process.Dead() {
		return all(len(msgs), postrider.Unavailable(errDead))
	}
	if err := in.wait(ctx, msgs); err != nil {
		return all(len(msgs), postrider.Unavailable(err))
	}
	errs := make([]error, len(msgs))
	going := in.reordered(msgs, in.admit(msgs, errs))
	dies := false
	for i, n := range going {
		if in.strikes(&in.crash, &msgs[n]) {
			going, dies = going[:i+1], true
		}
		if dies {
			break
		}
	}

	p.send(ctx, msgs, going, errs)
	if dies {
		process.Kill()
		return all(len(msgs), errDead)
	}
	p.repeat(ctx, msgs, going, errs)
	in.loseAnswers(msgs, going, errs)
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

// send publishes the messages with the given indexes.
func (p *faultyPublisher) send(ctx context.Context, msgs []postrider.Message, which []int, errs []error) {
	if len(which) == 0 {
		return
	}
	chosen := make([]postrider.Message, len(which))
	for i, n := range which {
		chosen[i] = msgs[n]
	}
	answers := p.pub.Publish(ctx, chosen)
	for i, n := range which {
		if i < len(answers) {
			errs[n] = answers[i]
		}
	}
}

// repeat publishes some messages a second time, and ignores the result.
func (p *faultyPublisher) repeat(ctx context.Context, msgs []postrider.Message, going []int, errs []error) {
	var again []int
	for _, n := range going {
		if errs[n] == nil && p.in.strikes(&p.in.duplicate, &msgs[n]) {
			again = append(again, n)
		}
	}
	p.send(ctx, msgs, again, make([]error, len(msgs)))
}

// wait waits for the delay of slow messages.
func (in *Injector) wait(ctx context.Context, msgs []postrider.Message) error {
	var delay time.Duration
	for i := range msgs {
		if in.strikes(&in.slow, &msgs[i]) {
			delay += in.delay
		}
	}
	if delay == 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// admit returns the indexes of messages that are not refused. It does not admit later messages of a
// refused one's key.
func (in *Injector) admit(msgs []postrider.Message, errs []error) (going []int) {
	failed := make(map[string]bool)
	for i := range msgs {
		m := &msgs[i]
		key := m.OrderKey()
		switch {
		case key != "" && failed[key]:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
		case in.strikes(&in.refuse, m):
			errs[i] = postrider.Permanent(injected("the broker refuses the message"))
		case in.strikes(&in.outage, m):
			errs[i] = postrider.Unavailable(injected("the broker is not available"))
		default:
			going = append(going, i)
		}
		failed[key] = failed[key] || errs[i] != nil
	}
	return going
}

// reordered applies the faults Reorder and ReorderKey.
func (in *Injector) reordered(msgs []postrider.Message, going []int) []int {
	key := func(place int) string { return msgs[going[place]].OrderKey() }
	for i := 0; i < len(going); i++ {
		if !in.strikes(&in.reorder, &msgs[going[i]]) {
			continue
		}
		for j := i + 1; j < len(going); j++ {
			if key(j) == "" || key(j) != key(i) {
				// All messages between are of one key, so this one overtakes none of its own key.
				overtaker := going[j]
				going = slices.Insert(slices.Delete(going, j, j+1), i, overtaker)
				i++ // skip the overtaken message
				break
			}
		}
	}
	for i := 0; i < len(going); i++ {
		if key(i) == "" || !in.strikes(&in.reorderKey, &msgs[going[i]]) {
			continue
		}
		for j := i + 1; j < len(going); j++ {
			if key(j) == key(i) {
				going[i], going[j] = going[j], going[i]
				break
			}
		}
	}
	return going
}

// loseAnswers reports confirmed messages as failed: those that are struck, and later ones of their
// keys.
func (in *Injector) loseAnswers(msgs []postrider.Message, going []int, errs []error) {
	lost := make(map[string]bool)
	for _, n := range going {
		key := msgs[n].OrderKey()
		if errs[n] != nil {
			continue
		}
		if in.strikes(&in.loseAnswer, &msgs[n]) || key != "" && lost[key] {
			errs[n], lost[key] = injected("the broker's answer was lost"), true
		}
	}
}

func all(n int, err error) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}
