package simulation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/postrider/postrider"
)

// link is the connection of one process to the broker.
type link struct{ p *process }

// recaller is the link to a broker that can report what has arrived.
type recaller struct{ link }

// publisher returns the connection of a process to the broker of the plan.
func (p *process) publisher() postrider.Publisher {
	if p.w.plan.Recalls {
		return recaller{link{p}}
	}
	return link{p}
}

// Recall implements [broker.Recaller].
func (l recaller) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	errs := l.recall(ctx, names, since, found)
	if errors.Join(errs...) != nil {
		l.p.w.model.unasked()
	}
	return errs
}

func (l recaller) recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	p, w := l.p, l.p.w
	if !p.run() {
		return all(errDead, len(names))
	}
	r := p.chance("Recall")
	what := ""
	if !w.healed() {
		what = w.plan.Broker.draw(r)
	}
	if hangs, down := w.brokerIsDown(); down || what == "fails" || what == "refuses" {
		if hangs {
			<-ctx.Done()
		}
		return all(postrider.Unavailable(errInjected), len(names))
	}
	latency := time.Duration(r.Int64N(int64(w.plan.Config.Lease / 10)))
	before := time.Duration(r.Int64N(int64(latency + 1)))
	if err := p.sleep(ctx, before); err != nil || !p.run() {
		return all(errDead, len(names))
	}
	errs := make([]error, len(names))
	for i, name := range names {
		if _, down := w.nameIsDown(name); down {
			errs[i] = postrider.NameUnavailable(errInjected)
			continue
		}
		errs[i] = errors.Join(w.stored.Recall(ctx, []string{name}, since, found)...)
	}
	if err := p.sleep(ctx, latency-before); err != nil || !p.run() || what == "unknown" {
		return all(errInjected, len(names))
	}
	if what == "hangs" {
		<-ctx.Done()
		return all(ctx.Err(), len(names))
	}
	return errs
}

// KeepsOrder implements [broker.OrderKeeper].
func (l link) KeepsOrder() bool { return l.p.w.plan.KeepsOrder }

// NameOf implements [broker.Namer].
func (l link) NameOf(m *postrider.Message) string { return m.Topic }

// Close implements [postrider.Publisher].
func (l link) Close() error { return nil }

// Publish implements [postrider.Publisher].
func (l link) Publish(ctx context.Context, msgs []postrider.Message) []error {
	p, w := l.p, l.p.w
	w.model.begin(p.name, msgs, w.plan.KeepsOrder)
	defer w.model.end(p.name, msgs)
	lease := w.plan.Config.Lease
	w.model.enter(p, msgs, lease)
	defer w.model.leave(p, msgs)
	if !p.run() {
		return all(errDead, len(msgs))
	}
	r := p.chance("Publish")
	latency := time.Duration(r.Int64N(int64(lease / 100)))
	what := ""
	if !w.healed() {
		switch what = w.plan.Broker.draw(r); what {
		case "slow":
			latency = lease * time.Duration(r.IntN(120)) / 100
		case "hangs", "late":
		default:
			what = "" // decided for each message
		}
	}
	if hangs, down := w.brokerIsDown(); down {
		if !hangs {
			w.model.unanswered(msgs)
			return all(postrider.Unavailable(errInjected), len(msgs))
		}
		what = "hangs"
	}
	fault := func(err error) []error {
		w.model.fault("%s: Publish %s: %v", p.name, what, err)
		w.model.unanswered(msgs)
		return all(err, len(msgs))
	}
	switch what {
	case "hangs":
		<-ctx.Done()
		return fault(ctx.Err())
	case "late":
		sent := clones(msgs)
		w.later(lease*time.Duration(1+r.IntN(20))/10, func() { l.accept(context.WithoutCancel(ctx), sent, r) })
		<-ctx.Done()
		return fault(ctx.Err())
	}
	before := time.Duration(r.Int64N(int64(latency + 1)))
	if err := p.sleep(ctx, before); err != nil {
		return fault(err)
	}
	late := p.standsStill()
	if !p.run() {
		return fault(errDead)
	}
	if late && ctx.Err() != nil && r.IntN(2) == 0 { // it was about to send, and does not check the clock again
		return fault(ctx.Err())
	}
	errs := l.accept(ctx, msgs, r)
	if err := p.sleep(ctx, latency-before); err != nil {
		return fault(err)
	}
	if !p.run() {
		return fault(errDead)
	}
	return errs
}

// accept delivers the messages to the broker one at a time, and returns its responses.
func (l link) accept(ctx context.Context, msgs []postrider.Message, r *rand.Rand) []error {
	p, w := l.p, l.p.w
	errs := make([]error, len(msgs))
	places := make([]int, len(msgs))
	for i := range places {
		places[i] = i
	}
	if !w.plan.KeepsOrder { // the messages have different keys
		r.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	}
	failed := make(map[string]bool)
	for n, i := range places {
		m := &msgs[i]
		if m.Key != "" && failed[m.Key] {
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			continue
		}
		var arrives bool
		if unknown, down := w.nameIsDown(m.Topic); down {
			if errs[i] = postrider.NameUnavailable(errInjected); unknown {
				errs[i] = errInjected
			}
			failed[m.Key] = true
			w.model.failed(m, false, errs[i])
			continue
		}
		switch w.model.kindOf(m) {
		case refused:
			errs[i], arrives = postrider.Permanent(errInjected), false
		case swallows:
			errs[i], arrives = errInjected, false
		case crasher:
			p.kill()
			for _, rest := range places[n:] {
				errs[rest] = errDead
			}
			return errs
		default:
			arrives, errs[i] = l.mood(m)
		}
		if arrives && w.plan.Recalls {
			if fenced := errors.Join(w.stored.Publish(ctx, []postrider.Message{*m})...); fenced != nil {
				arrives, errs[i] = false, fenced
			}
		}
		if arrives {
			w.model.receive(m, p.name)
		}
		if errs[i] != nil {
			failed[m.Key] = true
			w.model.failed(m, arrives, errs[i])
		}
	}
	return errs
}

// mood decides the fate of one message.
func (l link) mood(m *postrider.Message) (arrives bool, err error) {
	w := l.p.w
	if w.healed() {
		return true, nil
	}
	r := w.chance(m.Key + string(m.Payload) + " " + strconv.Itoa(w.model.attempts(m)))
	switch w.plan.Broker.draw(r) {
	case "fails":
		return false, postrider.Unavailable(errInjected)
	case "refuses":
		return false, postrider.Permanent(errInjected)
	case "unknown":
		return r.IntN(2) == 0, errInjected
	}
	return true, nil
}

func all(err error, n int) []error {
	errs := make([]error, n)
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func clones(msgs []postrider.Message) []postrider.Message {
	return append([]postrider.Message(nil), msgs...)
}
