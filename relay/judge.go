package relay

import (
	"errors"
	"time"

	"github.com/postrider/postrider"
)

// longestWish bounds what an error may ask for: a destination that is confused about time must not stop a key for good.
const longestWish = 5 * time.Minute

// wish returns how long err asks to be left alone, such as what an HTTP server has said in Retry-After.
func wish(err error) time.Duration {
	var w interface{ RetryAfter() time.Duration }
	if errors.As(err, &w) {
		return min(w.RetryAfter(), longestWish)
	}
	return 0
}

// judge takes note of what a Publish has returned.
func (l *lane) judge(errs []error) {
	count, w := &l.t.r.count, &l.window
	count.retried.Add(int64(w.repeated))
	confirmed, failed := w.record(errs)
	count.published.Add(int64(confirmed))
	count.failed.Add(int64(failed))
	if confirmed > 0 {
		l.pause.reset()
		l.arrivals++
	}
	l.failing.Store(confirmed == 0)
	if failed > 0 {
		l.punish(errs, confirmed)
	} else if w.order.failed == 0 { // what has failed before waits no more
		l.trouble.ok()
	}
	if confirmed > 0 {
		l.advance()
	}
}

// punish holds the messages of the call that failed, and the whole lane if it looks as if the destination has.
//
// Among messages that fail for ever, others must find their turn, also if one failure keeps a whole call from being
// tried: a message with more faults has to wait for those with fewer, for as long as nothing is confirmed.
func (l *lane) punish(errs []error, confirmed int) {
	w := &l.window
	now, pause := time.Now(), l.pause.next()
	var cause error
	refused, unavailable := 0, 0
	again := confirmed == 0
	for i, pos := range w.picked { // what was not tried is no witness
		again = again && (w.order.at(pos).state != freshState || errors.Is(answer(errs, i), postrider.ErrNotTried))
	}
	alone := again && w.order.failed <= w.size // the call was of all messages that fail, and of no others
	lone := again && w.fewFail(fewFailures)
	for i, pos := range w.picked {
		err := answer(errs, i)
		if err == nil {
			continue
		}
		if w.order.at(pos).state == asideState { // with an earlier one of its key
			continue
		}
		if errors.Is(err, postrider.ErrNotTried) { // whatever its publisher did not try for may be tried now
			continue
		}
		d := pause
		switch postrider.ClassOf(err) {
		case postrider.ClassPermanent:
			refused++
			l.refuse(pos, 1, err)
			continue
		case postrider.ClassUnavailable:
			unavailable++
		default: // perhaps the message is to blame: let others go first
			faults, guilt := w.order.blame(pos, l.arrivals, confirmed > 0)
			if guilt >= min(ownFaults, l.t.r.cfg.MaxAttempts) || lone && faults >= loneFaults {
				refused++
				l.refuse(pos, min(faults, ownFaults), err)
				continue
			}
			d = max(pause, l.pause.after(faults)) * 3 / 2
		}
		if cause == nil {
			cause = err
		}
		w.order.hold(pos, now.Add(max(d, wish(err))))
	}
	l.t.r.count.refused.Add(int64(refused))
	if cause != nil {
		l.trouble.fail(cause)
	}
	if refused > 0 {
		l.pause.reset() // the destination is there
	}
	// What looks like an outage stops the lane: the rest of the window would fare no better. Not so if there is no rest,
	// or if the call got an answer.
	if confirmed == 0 && (unavailable > 0 || refused == 0 && !alone) {
		l.calm = now.Add(pause)
	}
}
