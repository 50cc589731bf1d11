package relay

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
)

// attendMax is the longest time between two looks at what is set aside, while something is that will be due: an operator
// may want it sent now.
const attendMax = 500 * time.Millisecond

// attend makes sure that what is set aside is looked at.
func (t *tenure) attend() {
	t.aside.Store(true)
	signal(t.asided)
}

// attendants sends what was set aside when its time has come, until ctx ends. Lanes do not wait for it, nor it for them.
func (t *tenure) attendants(ctx context.Context) {
	cfg := &t.r.cfg
	trouble := outage{log: t.r.log, what: "sending what was set aside"}
	pause := backoff{min: cfg.RetryMin, max: cfg.RetryMax}
	for ctx.Err() == nil {
		wait := time.Hour // until somebody says that there is something
		if t.aside.Load() {
			done, next, err := t.attendOnce() //nolint:contextcheck // what has begun lasts as long as the tenure
			switch {
			case err != nil && (t.over(err) || t.ctx.Err() != nil):
				return
			case err != nil:
				trouble.fail(err)
				wait = pause.next()
			case done:
				trouble.ok()
				pause.reset()
				continue
			case next < 0:
				t.aside.Store(false)
				trouble.ok()
			default:
				wait = min(max(next, time.Millisecond), attendMax)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-t.asided:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// awaitAttendant returns when nothing more is sent for the lane, which is ending: no attendant begins with such a one, but
// one may be in the middle of it.
func (l *lane) awaitAttendant() {
	l.attended.Lock()
	defer l.attended.Unlock()
}

// attendOnce sends what is due. It reports whether there was anything and, if not, how long it takes until there is.
func (t *tenure) attendOnce() (done bool, next time.Duration, err error) {
	lanes := make(map[int]*lane)
	var shards []int
	now := time.Now()
	deadline := now.Add(t.r.cfg.PublishTimeout)
	for _, l := range t.lanes() {
		if l.slice != nil { // what is set aside belongs to the whole
			continue
		}
		l.attended.Lock() // before the look: whoever gives up a lane that is ending waits for the lock
		until, ok := l.safeUntil(now)
		if !ok || !l.loaded.Load() || l.ending() {
			l.attended.Unlock()
			continue
		}
		defer l.attended.Unlock()
		shards = append(shards, l.shard)
		lanes[l.shard] = l
		if until.Before(deadline) {
			deadline = until
		}
	}
	if len(shards) == 0 {
		return false, attendMax, nil
	}
	call, cancel := context.WithTimeout(t.ctx, callTimeout)
	due, err := t.feed.Due(call, shards, t.r.cfg.BatchSize)
	cancel()
	if err != nil || len(due.Messages) == 0 {
		return false, due.Next, err
	}
	concluded := 0
	var outage error
	for rest := due.Messages; len(rest) > 0 && time.Until(deadline) > t.r.cfg.margin(); { // the others come again
		var round []postrider.Deferred
		round, rest = t.round(rest, lanes)
		alone := lanes[round[0].Shard].inherited.left > 0
		n, stuck, err := t.sendRound(round, lanes, deadline)
		concluded += n
		if alone && postrider.ClassOf(err) == postrider.ClassUnavailable { // one message says nothing of the others
			outage, err = err, nil
		}
		if err != nil {
			return false, 0, err
		}
		rest = slices.DeleteFunc(rest, func(d postrider.Deferred) bool {
			return lanes[d.Shard].ending() || d.OrderKey() != "" && stuck[d.OrderKey()]
		})
	}
	if concluded == 0 && outage != nil {
		return false, 0, outage
	}
	return concluded > 0, attendMax, nil
}

// round splits what is due into what may go in one call and what has to follow. What may be deadly goes alone.
func (t *tenure) round(due []postrider.Deferred, lanes map[int]*lane) (round, rest []postrider.Deferred) {
	careful := func(d postrider.Deferred) bool { return lanes[d.Shard].inherited.left > 0 }
	if careful(due[0]) {
		return due[:1], due[1:]
	}
	if t.r.keepsOrder && !slices.ContainsFunc(due, careful) {
		n := min(len(due), t.r.cfg.BatchSize)
		return due[:n], due[n:]
	}
	seen := make(map[string]bool)
	for _, d := range due {
		key := d.OrderKey()
		if len(round) == t.r.cfg.BatchSize || careful(d) || !t.r.keepsOrder && key != "" && seen[key] {
			rest = append(rest, d)
			continue
		}
		seen[key] = true
		round = append(round, d)
	}
	return round, rest
}

// sendRound sends messages and concludes what became of them. It returns how many that were, and the keys of which nothing
// more may be sent now.
func (t *tenure) sendRound(round []postrider.Deferred, lanes map[int]*lane, deadline time.Time) (int, map[string]bool, error) {
	d := &round[0]
	if l := lanes[d.Shard]; l.inherited.left > 0 {
		errs, deaths, err := t.publishAlone(d, l, deadline)
		switch {
		case err != nil:
			return 0, nil, err
		case deaths >= deadlyStarts:
			return t.bury(d, deaths, lanes)
		case errs == nil:
			return 0, map[string]bool{d.OrderKey(): d.Blocking}, nil
		}
		return t.concludeRound(round, errs, lanes)
	}
	return t.concludeRound(round, t.publishAside(round, deadline), lanes)
}

// publishAside sends messages that were set aside. It returns an answer for each.
func (t *tenure) publishAside(round []postrider.Deferred, deadline time.Time) []error {
	msgs := make([]postrider.Message, len(round))
	for i := range round {
		msgs[i] = round[i].Message
	}
	ctx, cancel := context.WithDeadline(t.hard, deadline)
	defer cancel()
	answers := make([]error, len(round))
	errs := t.r.pub.Publish(ctx, msgs)
	for i := range answers {
		answers[i] = answer(errs, i)
	}
	return answers
}

// publishAlone sends a message that may be deadly, while no other is under way that may be. It does not if relays have died over
// it, whose number it returns, nor when it is too late for it: then there are no answers.
func (t *tenure) publishAlone(d *postrider.Deferred, l *lane, deadline time.Time) (answers []error, deaths int, err error) {
	ctx, cancel := context.WithDeadline(t.ctx, deadline.Add(-t.r.cfg.margin()))
	defer cancel()
	select {
	case t.r.careful <- struct{}{}:
		defer func() { <-t.r.careful }()
	case <-ctx.Done():
		return nil, 0, nil
	}
	if l.ending() {
		return nil, 0, nil
	}
	deaths, err = l.inherited.begin(ctx, t.feed, d.Seq, postrider.Start{Shard: d.Shard, Seq: d.Seq})
	if err != nil || deaths >= deadlyStarts || ctx.Err() != nil || l.ending() {
		return nil, deaths, err
	}
	return t.publishAside([]postrider.Deferred{*d}, deadline), 0, nil
}

// bury concludes that a message is deadly. If an operator then wants it sent all the same, it is.
func (t *tenure) bury(d *postrider.Deferred, deaths int, lanes map[int]*lane) (int, map[string]bool, error) {
	err := deadly(deaths)
	c := postrider.Conclusion{Shard: d.Shard, Seq: d.Seq, Status: postrider.StatusDead, Attempts: d.Attempts + deaths, Cause: err.Error()}
	t.r.died(d.Shard, &d.Message, c.Attempts, err)
	if err := t.conclude([]postrider.Conclusion{c}, lanes); err != nil {
		return 0, nil, err
	}
	lanes[d.Shard].inherited.begun[d.Seq] = 0
	return 1, map[string]bool{d.OrderKey(): d.Blocking}, nil
}

// concludeRound concludes what the answers to messages say.
func (t *tenure) concludeRound(round []postrider.Deferred, errs []error, lanes map[int]*lane) (int, map[string]bool, error) {
	// While lanes fail too, and nothing arrives, a failure says nothing of the message.
	suspicious := !slices.ContainsFunc(errs, func(err error) bool { return err == nil }) && len(errs) > 0 &&
		slices.ContainsFunc(t.lanes(), func(l *lane) bool { return l.failing.Load() })
	stuck := make(map[string]bool)
	var done []postrider.Conclusion
	var outage error
	published, failed, refused := 0, 0, 0
	for i := range round {
		d := &round[i]
		c := postrider.Conclusion{Shard: d.Shard, Seq: d.Seq}
		switch err := answer(errs, i); {
		case err == nil:
			c.Delivered = true
			published++
		case d.Blocking && stuck[d.OrderKey()]: // with an earlier one of its key, behind which it waits on
			failed++
			continue
		case postrider.ClassOf(err) == postrider.ClassUnavailable:
			failed++
			stuck[d.OrderKey()] = true
			outage = cmp.Or(outage, err)
			continue
		default:
			failed++
			refused++
			stuck[d.OrderKey()] = stuck[d.OrderKey()] || d.Blocking
			c.Attempts, c.Cause = d.Attempts+1, err.Error()
			if postrider.ClassOf(err) == postrider.ClassUnknown && suspicious {
				c.Attempts = d.Attempts // it may as well be the destination
			}
			if c.Status, c.Delay = t.r.cfg.verdict(c.Attempts, err); c.Status == postrider.StatusDead {
				t.r.died(d.Shard, &d.Message, c.Attempts, err)
			}
		}
		done = append(done, c)
	}
	count := &t.r.count
	count.published.Add(int64(published))
	count.failed.Add(int64(failed))
	count.refused.Add(int64(refused))
	count.retried.Add(int64(len(round)))

	if len(done) == 0 {
		return 0, stuck, outage
	}
	return len(done), stuck, t.conclude(done, lanes)
}

// conclude tells the store of what became of messages, and the lanes of keys that are free again.
func (t *tenure) conclude(done []postrider.Conclusion, lanes map[int]*lane) error {
	var shards []int
	for _, c := range done {
		shards = append(shards, c.Shard)
	}
	slices.Sort(shards)
	shards = slices.Compact(shards)
	for _, shard := range shards { // in one order, so that nobody waits in a circle
		lanes[shard].aside.mu.Lock()
		defer lanes[shard].aside.mu.Unlock()
	}
	call, cancel := context.WithTimeout(t.ctx, callTimeout)
	defer cancel()
	free, err := t.feed.Conclude(call, done)
	if err != nil {
		return err
	}
	for _, shard := range shards {
		lanes[shard].freed(free)
	}
	return nil
}
