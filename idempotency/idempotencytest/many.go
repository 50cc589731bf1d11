package idempotencytest

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/postrider/postrider/idempotency"
)

// scopes checks that IDs differ if any of their parts differ, and that parts are not simply
// concatenated.
func (b *bench[Tx]) scopes() {
	ids := []idempotency.ID{
		{Tenant: "a", Principal: "b", Route: "c", Key: "d"},
		{Tenant: "", Principal: "ab", Route: "c", Key: "d"},
		{Tenant: "ab", Principal: "", Route: "c", Key: "d"},
		{Tenant: "a", Principal: "bc", Route: "", Key: "d"},
		{Tenant: "a", Principal: "b", Route: "cd", Key: ""},
		{Tenant: "a", Principal: "b", Route: "c", Key: "D"},
		{Tenant: "A", Principal: "b", Route: "c", Key: "d"},
		{Tenant: "a", Principal: "B", Route: "c", Key: "d"},
		{Tenant: "a", Principal: "b", Route: "C", Key: "d"},
		{Tenant: "a", Principal: "b ", Route: "c", Key: "d"},
		{Tenant: "a", Principal: "b", Route: "c", Key: "d "},
		{Tenant: "é", Principal: "b", Route: "c", Key: "d"},
		{Tenant: "e\u0301", Principal: "b", Route: "c", Key: "d"},
		{Tenant: strings.Repeat("t", 255), Principal: strings.Repeat("p", 255), Route: strings.Repeat("r", 512), Key: strings.Repeat("k", 255)},
	}
	for i, id := range ids {
		c := claim("")
		c.ID = id
		b.want(c, idempotency.Claimed)
		b.must(b.Store.Save(b.ctx(), c, idempotency.Answer{Status: 200, Body: fmt.Append(nil, i)}))
	}
	for i, id := range ids {
		c := claim("")
		c.ID = id
		outcome, err := b.Store.Claim(b.ctx(), c)
		if err != nil || outcome.State != idempotency.Done || string(outcome.Answer.Body) != fmt.Sprint(i) {
			b.Errorf("%+v: %v %q, %v", id, outcome.State, outcome.Answer.Body, err)
		}
	}
}

// content checks that answers are stored byte for byte.
func (b *bench[Tx]) content() {
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	large := make([]byte, 1<<20)
	for i := range large {
		large[i] = byte(rand.Uint32())
	}
	for i, a := range []idempotency.Answer{
		{Status: 204, Header: http.Header{}},
		{Status: 599, Header: http.Header{"X": {}}, Body: []byte{0}},
		{Status: 200, Header: http.Header{"A": {"1", "2", ""}, "Content-Type": {"text/plain; charset=iso-8859-1"}, "L": {"caf\xe9"}}, Body: every},
		{Status: 200, Header: http.Header{}, Body: large},
	} {
		c := claim(fmt.Sprint(i))
		b.want(c, idempotency.Claimed)
		b.must(b.Store.Save(b.ctx(), c, a))
		outcome, err := b.Store.Claim(b.ctx(), another(c))
		if len(outcome.Answer.Body) == 0 {
			outcome.Answer.Body = nil
		}
		if err != nil || !reflect.DeepEqual(outcome.Answer, a) {
			b.Errorf("answer %d is another one, %v", i, err)
		}
	}
}

// crowd checks that exactly one of many concurrent callers gets a key, by Claim or ClaimIn.
func (b *bench[Tx]) crowd() {
	const keys, each = 20, 16
	for i := range keys {
		var claimed atomic.Int32
		var group sync.WaitGroup
		finish := make(chan struct{})
		var asked sync.WaitGroup
		for j := range each {
			asked.Add(1)
			group.Go(func() {
				c := claim(fmt.Sprint(i))
				var outcome idempotency.Outcome
				var err error
				if j%2 == 0 {
					outcome, err = b.Store.Claim(b.ctx(), c)
					asked.Done()
				} else {
					tx, _, rollback := b.Begin(b.T)
					outcome, err = b.Store.ClaimIn(b.ctx(), tx, inside(c))
					asked.Done()
					<-finish
					defer func() { _ = rollback() }()
				}
				if err != nil || outcome.State != idempotency.Claimed && outcome.State != idempotency.Busy {
					b.Errorf("%v, %v", outcome.State, err)
				}
				if err == nil && outcome.State == idempotency.Claimed {
					claimed.Add(1)
				}
			})
		}
		asked.Wait()
		close(finish)
		group.Wait()
		if n := claimed.Load(); n != 1 {
			b.Errorf("%d have the key", n)
		}
	}
}

// replays checks that concurrent replays of an answer do not fail.
func (b *bench[Tx]) replays() {
	c := claim("k")
	b.want(c, idempotency.Claimed)
	b.must(b.Store.Save(b.ctx(), c, answer))
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			for range 10 {
				outcome, err := b.Store.Claim(b.ctx(), another(c))
				if err != nil || outcome.State != idempotency.Done {
					b.Errorf("%v, %v", outcome.State, err)
				}
			}
		})
	}
	group.Wait()
}

// model is the expected state of a key.
type model struct {
	owner       int // index of the claim, or -1
	fingerprint byte
	done        bool
}

// random compares the store with a model over many random steps. No lease expires meanwhile.
func (b *bench[Tx]) random() {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	var claims []idempotency.Claim
	keys := make([]model, 3)
	for i := range keys {
		keys[i].owner = -1
	}
	pick := func(key int) (int, bool) {
		var of []int
		for i, c := range claims {
			if c.Key == fmt.Sprint(key) {
				of = append(of, i)
			}
		}
		if len(of) == 0 {
			return 0, false
		}
		return of[random.IntN(len(of))], true
	}
	for step := range 400 {
		n := random.IntN(len(keys))
		key := &keys[n]
		where := fmt.Sprintf("seed %d, step %d", seed, step)
		action := random.IntN(10)
		if action < 5 {
			c := claim(fmt.Sprint(n))
			c.Fingerprint[0] = byte(random.IntN(4) / 3)
			want := idempotency.Claimed
			switch free := key.owner < 0 && !key.done; {
			case !free && key.fingerprint != c.Fingerprint[0]:
				want = idempotency.Mismatch
			case key.done:
				want = idempotency.Done
			case !free:
				want = idempotency.Busy
			}
			if action < 3 {
				claims = append(claims, c)
				outcome, err := b.Store.Claim(b.ctx(), c)
				if err != nil || outcome.State != want {
					b.Fatalf("%s: claim: %v, %v; want %v", where, outcome.State, err, want)
				}
				if want == idempotency.Claimed {
					*key = model{owner: len(claims) - 1, fingerprint: c.Fingerprint[0]}
				}
				continue
			}
			tx, commit, rollback := b.Begin(b.T)
			c = inside(c)
			outcome, err := b.Store.ClaimIn(b.ctx(), tx, c)
			if err != nil || outcome.State != want {
				b.Fatalf("%s: claim in: %v, %v; want %v", where, outcome.State, err, want)
			}
			if want == idempotency.Claimed && random.IntN(2) == 0 {
				b.must(b.Store.Complete(b.ctx(), tx, c, answer))
				b.must(commit())
				*key = model{owner: -1, fingerprint: c.Fingerprint[0], done: true}
			} else {
				b.must(rollback())
			}
			continue
		}
		i, ok := pick(n)
		if !ok {
			continue
		}
		owned := key.owner == i
		switch action {
		case 5, 6:
			b.must(b.Store.Release(b.ctx(), claims[i]))
			if owned && !key.done {
				*key = model{owner: -1}
			}
		case 7, 8:
			if random.IntN(3) > 0 {
				continue // otherwise every key would soon be done
			}
			err := b.Store.Save(b.ctx(), claims[i], answer)
			if (err == nil) != owned {
				b.Fatalf("%s: save: %v; has the key: %v", where, err, owned)
			}
			key.done = key.done || owned
		case 9:
			tx, _, rollback := b.Begin(b.T)
			err := b.Store.Complete(b.ctx(), tx, claims[i], answer)
			b.must(rollback())
			if (err == nil) != owned {
				b.Fatalf("%s: complete: %v; has the key: %v", where, err, owned)
			}
		}
	}
}
