package route

import (
	"context"
	"errors"
	"sync"

	"github.com/postrider/postrider"
)

// batch is the working memory of one Publish. It is pooled because messages are large.
type batch struct {
	groups  []group
	errs    []error         // nil until a message fails
	refused map[string]bool // keys with a message that was refused
	sent    map[string]int  // destination by key; only if w.guarded
}

// group holds the messages for one destination.
type group struct {
	messages []postrider.Message
	places   []int // index of each message in the caller's slice
	errs     []error
}

// Publish implements [postrider.Publisher]. Each destination receives its messages in order, in one
// call; the calls run concurrently. A message that no rule matches, or that lacks a value that its
// rule requires, is refused, and later messages of its key are not tried.
func (r *Router) Publish(ctx context.Context, msgs []postrider.Message) []error {
	w := r.ways.Load()
	b, _ := w.batches.Get().(*batch)
	defer w.recycle(b)
	changed := false
	for i := range msgs {
		changed = r.sort(w, b, msgs, i, changed) || changed
	}
	if !changed && len(msgs) > 0 {
		return w.publish(ctx, 0, msgs)
	}
	w.send(ctx, b)
	for g := range b.groups {
		for j, err := range b.groups[g].errs {
			if err != nil {
				b.fail(b.groups[g].places[j], len(msgs), err)
			}
		}
	}
	return b.errs
}

// sort routes message i. Nothing is copied as long as every message goes to the first destination
// unchanged. From the first other message on, sort returns true and copies all.
func (r *Router) sort(w *ways, b *batch, msgs []postrider.Message, i int, copying bool) bool {
	m := &msgs[i]
	d, to, err := r.decide(w, m)
	if err == nil && len(b.refused) > 0 && to >= 0 && b.refused[m.OrderKey()] {
		err = postrider.Unavailable(postrider.ErrNotTried)
	}
	if err == nil && to >= 0 && w.guarded && !b.mayGo(w, m, to) {
		err = postrider.Unavailable(errElsewhere)
	}
	if err == nil && to == 0 && d.Name == m.Topic && d.ID == m.WireID && !copying {
		return false
	}
	if !copying {
		for j := range i {
			b.groups[0].add(msgs[j], j)
		}
	}
	switch {
	case err != nil:
		b.fail(i, len(msgs), err)
		if key := m.OrderKey(); key != "" {
			if b.refused == nil {
				b.refused = make(map[string]bool)
			}
			b.refused[key] = true
		}
	case to >= 0:
		g := &b.groups[to]
		g.add(*m, i)
		last := &g.messages[len(g.messages)-1]
		last.Topic, last.WireID = d.Name, d.ID
	}
	return true
}

// decide returns the index of the destination; negative if the message is dropped or filtered out.
func (r *Router) decide(w *ways, m *postrider.Message) (Decision, int, error) {
	if r.filtersOut(m) {
		return Decision{}, -1, nil
	}
	d, err := w.table.Resolve(m)
	if err != nil {
		if errors.Is(err, ErrNoRoute) {
			r.unmatched.add(m)
		}
		return d, -1, err
	}
	if d.Drop {
		r.dropped.Add(1)
		return d, -1, nil
	}
	return d, w.byRule[d.Rule], nil
}

// filtersOut reports whether the filter excludes a message, and counts it then.
func (r *Router) filtersOut(m *postrider.Message) bool {
	if r.only == nil || r.only.passes(m) {
		return false
	}
	r.passed.Add(1)
	return true
}

// send publishes every group, the last one on the caller's goroutine.
func (w *ways) send(ctx context.Context, b *batch) {
	var others sync.WaitGroup
	mine := -1
	for i := range b.groups {
		if len(b.groups[i].messages) == 0 {
			continue
		}
		if mine >= 0 {
			at := mine
			others.Go(func() { b.groups[at].errs = w.publish(ctx, at, b.groups[at].messages) })
		}
		mine = i
	}
	if mine >= 0 {
		b.groups[mine].errs = w.publish(ctx, mine, b.groups[mine].messages)
	}
	others.Wait()
}

func (g *group) add(m postrider.Message, place int) {
	g.messages = append(g.messages, m)
	g.places = append(g.places, place)
}

func (b *batch) fail(place, count int, err error) {
	if b.errs == nil {
		b.errs = make([]error, count)
	}
	b.errs[place] = err
}

// recycle clears the messages so that the pool does not retain their payloads.
func (w *ways) recycle(b *batch) {
	for i := range b.groups {
		g := &b.groups[i]
		clear(g.messages)
		g.messages, g.places, g.errs = g.messages[:0], g.places[:0], nil
	}
	b.errs, b.refused, b.sent = nil, nil, nil
	w.batches.Put(b)
}
