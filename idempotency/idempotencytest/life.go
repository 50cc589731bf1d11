package idempotencytest

import (
	"errors"
	"strconv"
	"time"

	"github.com/postrider/postrider/idempotency"
)

func (b *bench[Tx]) sequence() {
	c := claim("k")
	b.want(c, idempotency.Claimed)
	b.want(c, idempotency.Claimed) // with its own token
	b.want(another(c), idempotency.Busy)
	other := another(c)
	other.Fingerprint[0]++
	b.want(other, idempotency.Mismatch)
	b.must(b.Store.Save(b.ctx(), c, answer))
	b.want(another(c), idempotency.Done)
	b.want(c, idempotency.Done)
	b.want(other, idempotency.Mismatch)
	tx, _, rollback := b.Begin(b.T)
	b.wantIn(tx, inside(c), idempotency.Done)
	b.wantIn(tx, inside(other), idempotency.Mismatch)
	b.must(rollback())
}

func (b *bench[Tx]) commits() {
	c := claim("k")
	b.want(c, idempotency.Claimed)
	tx, _, rollback := b.Begin(b.T)
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.want(another(c), idempotency.Busy)
	b.must(rollback())
	b.want(another(c), idempotency.Busy)
	b.want(c, idempotency.Claimed)
	tx, commit, _ := b.Begin(b.T)
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.must(commit())
	b.want(another(c), idempotency.Done)
}

func (b *bench[Tx]) releases() {
	c := claim("k")
	b.must(b.Store.Release(b.ctx(), c)) // there is no claim yet
	b.want(c, idempotency.Claimed)
	b.must(b.Store.Release(b.ctx(), another(c)))
	b.want(another(c), idempotency.Busy)
	b.must(b.Store.Release(b.ctx(), c))
	b.mustLose(b.Store.Save(b.ctx(), c, answer))
	second := another(c)
	second.Fingerprint[0]++ // the key is new again
	b.want(second, idempotency.Claimed)
	b.must(b.Store.Release(b.ctx(), c))
	b.want(another(second), idempotency.Busy)
	b.must(b.Store.Save(b.ctx(), second, answer))
	b.must(b.Store.Release(b.ctx(), second))
	b.want(another(second), idempotency.Done)

	third := claim("about to be completed")
	b.want(third, idempotency.Claimed)
	tx, commit, _ := b.Begin(b.T)
	b.must(b.Store.Complete(b.ctx(), tx, third, answer))
	b.must(b.Store.Release(b.ctx(), third)) // neither waits nor releases the completed key
	b.must(commit())
	b.want(another(third), idempotency.Done)
}

func (b *bench[Tx]) takeover() {
	zombie := short(claim("k"))
	b.want(zombie, idempotency.Claimed)
	successor := another(claim("k"))
	b.eventually(successor)
	b.want(zombie, idempotency.Busy)
	b.mustLose(b.Store.Save(b.ctx(), zombie, answer))
	tx, _, rollback := b.Begin(b.T)
	b.mustLose(b.Store.Complete(b.ctx(), tx, zombie, answer))
	b.must(rollback())
	b.must(b.Store.Release(b.ctx(), zombie))
	b.want(another(successor), idempotency.Busy)
	b.must(b.Store.Save(b.ctx(), successor, answer))
	b.mustLose(b.Store.Save(b.ctx(), zombie, answer)) // not even with an equal answer: its effect is a different one
	b.want(another(successor), idempotency.Done)

	crashed := short(claim("with another request"))
	b.want(crashed, idempotency.Claimed)
	other := another(crashed)
	other.Fingerprint[0]++
	time.Sleep(2 * crashed.Lease)
	b.want(other, idempotency.Mismatch)
}

// late checks that an expired lease is no loss as long as no other request claims the key.
func (b *bench[Tx]) late() {
	c := short(claim("k"))
	b.want(c, idempotency.Claimed)
	time.Sleep(2 * c.Lease)
	b.must(b.Store.Save(b.ctx(), c, answer))
	b.want(another(c), idempotency.Done)
}

func (b *bench[Tx]) lateOpen() {
	for _, committed := range []bool{true, false} {
		c := short(claim("k" + map[bool]string{true: "1", false: "2"}[committed]))
		b.want(c, idempotency.Claimed)
		tx, commit, rollback := b.Begin(b.T)
		b.must(b.Store.Complete(b.ctx(), tx, c, answer))
		time.Sleep(2 * c.Lease)
		b.want(another(c), idempotency.Busy) // and Claim does not wait
		next, _, undo := b.Begin(b.T)
		b.wantIn(next, inside(c), idempotency.Busy)
		b.must(undo())
		if committed {
			b.must(commit())
			b.want(another(c), idempotency.Done)
		} else {
			b.must(rollback())
			b.want(another(c), idempotency.Claimed)
		}
	}
}

func (b *bench[Tx]) inside() {
	c := inside(claim("k"))
	tx, _, rollback := b.Begin(b.T)
	b.wantIn(tx, c, idempotency.Claimed)
	b.want(claim("k"), idempotency.Busy)
	other, _, undo := b.Begin(b.T)
	b.wantIn(other, inside(c), idempotency.Busy)
	b.must(undo())
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.want(claim("k"), idempotency.Busy)
	b.must(rollback())

	tx, commit, _ := b.Begin(b.T)
	c = inside(c)
	c.Fingerprint[0]++ // nothing is left of the first attempt
	b.wantIn(tx, c, idempotency.Claimed)
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.must(commit())
	again := claim("k")
	b.want(again, idempotency.Mismatch)
	again.Fingerprint = c.Fingerprint
	b.want(again, idempotency.Done)

	tx, commit, _ = b.Begin(b.T)
	b.wantIn(tx, inside(claim("never completed")), idempotency.Claimed)
	b.must(commit())
	leased := claim("never completed")
	b.want(leased, idempotency.Claimed)
	tx, _, rollback = b.Begin(b.T)
	b.wantIn(tx, inside(leased), idempotency.Busy)
	b.must(rollback())
}

func (b *bench[Tx]) insideTakeover() {
	for _, committed := range []bool{true, false} {
		zombie := short(claim("k" + map[bool]string{true: "1", false: "2"}[committed]))
		b.want(zombie, idempotency.Claimed)
		time.Sleep(2 * zombie.Lease)
		tx, commit, rollback := b.Begin(b.T)
		successor := inside(zombie)
		b.wantIn(tx, successor, idempotency.Claimed)
		late := make(chan error)
		go func() { late <- b.Store.Save(b.ctx(), zombie, answer) }()
		b.must(b.Store.Complete(b.ctx(), tx, successor, answer))
		if committed {
			b.must(commit())
			b.mustLose(<-late)
			b.want(another(zombie), idempotency.Done)
		} else {
			b.must(rollback())
			if err := <-late; err != nil && !errors.Is(err, idempotency.ErrLost) {
				b.Fatal(err)
			}
		}
	}
}

func (b *bench[Tx]) twice() {
	other := answer
	other.Body = []byte("another")
	c := claim("k")
	b.want(c, idempotency.Claimed)
	tx, commit, _ := b.Begin(b.T)
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.must(b.Store.Complete(b.ctx(), tx, c, answer))
	b.must(commit())
	b.must(b.Store.Save(b.ctx(), c, answer))
	b.mustLose(b.Store.Save(b.ctx(), c, other))
	b.want(another(c), idempotency.Done)

	for _, c := range []idempotency.Claim{claim("k2"), inside(claim("k3"))} {
		tx, _, rollback := b.Begin(b.T)
		if c.Lease > 0 {
			b.want(c, idempotency.Claimed)
		} else {
			b.wantIn(tx, c, idempotency.Claimed)
		}
		b.must(b.Store.Complete(b.ctx(), tx, c, answer))
		b.mustLose(b.Store.Complete(b.ctx(), tx, c, other))
		b.must(rollback())
	}
}

func (b *bench[Tx]) retention() {
	keep := claim("kept")
	b.want(keep, idempotency.Claimed)
	b.must(b.Store.Save(b.ctx(), keep, answer))
	old := short(claim("old"))
	old.Retention = old.Lease
	b.want(old, idempotency.Claimed)
	b.must(b.Store.Save(b.ctx(), old, answer))
	pending := short(claim("old and never done"))
	pending.Retention = pending.Lease
	b.want(pending, idempotency.Claimed)
	within := inside(claim("old, in a transaction"))
	within.Retention = old.Lease
	tx, commit, _ := b.Begin(b.T)
	b.wantIn(tx, within, idempotency.Claimed)
	b.must(b.Store.Complete(b.ctx(), tx, within, answer))
	b.must(commit())

	time.Sleep(2 * old.Lease)
	fresh := another(old)
	fresh.Fingerprint[0]++
	fresh.Lease, fresh.Retention = time.Minute, time.Hour
	b.want(fresh, idempotency.Claimed) // although nothing was purged yet
	b.mustLose(b.Store.Save(b.ctx(), old, answer))
	b.must(b.Store.Save(b.ctx(), fresh, answer))
	fresh = inside(within)
	fresh.Fingerprint[0]++
	tx, _, rollback := b.Begin(b.T)
	b.wantIn(tx, fresh, idempotency.Claimed)
	b.must(b.Store.Complete(b.ctx(), tx, fresh, answer))
	b.must(rollback())

	if n, err := b.Store.Purge(b.ctx()); err != nil || n != 2 {
		b.Errorf("%d removed, %v; want 2", n, err)
	}
	b.mustLose(b.Store.Save(b.ctx(), pending, answer))
	b.want(another(keep), idempotency.Done)
	if n, err := b.Store.Purge(b.ctx()); err != nil || n != 0 {
		b.Errorf("%d removed, %v; want none", n, err)
	}
}

// manyOld checks that Purge removes all old keys, however many, except one that is being claimed
// again.
func (b *bench[Tx]) manyOld() {
	const keys = 600
	var held idempotency.Claim
	for i := 0; i < keys; {
		tx, commit, _ := b.Begin(b.T)
		for range 100 {
			held = inside(claim(strconv.Itoa(i)))
			held.Retention = time.Millisecond
			b.wantIn(tx, held, idempotency.Claimed)
			b.must(b.Store.Complete(b.ctx(), tx, held, answer))
			i++
		}
		b.must(commit())
	}
	time.Sleep(5 * time.Millisecond)
	tx, commit, _ := b.Begin(b.T)
	held = inside(held)
	held.Retention = time.Hour
	b.wantIn(tx, held, idempotency.Claimed)
	b.must(b.Store.Complete(b.ctx(), tx, held, answer))
	if n, err := b.Store.Purge(b.ctx()); err != nil || n != keys-1 {
		b.Errorf("%d removed, %v; want %d", n, err, keys-1)
	}
	b.must(commit())
	if n, err := b.Store.Purge(b.ctx()); err != nil || n != 0 {
		b.Errorf("%d removed, %v; want none", n, err)
	}
	b.want(another(leased(held)), idempotency.Done)
}

func leased(c idempotency.Claim) idempotency.Claim {
	c.Lease = time.Minute
	return c
}
