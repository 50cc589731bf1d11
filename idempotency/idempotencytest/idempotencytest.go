// Package idempotencytest is the conformance test suite for implementations of [idempotency.Store].
package idempotencytest

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider/idempotency"
)

// Harness is a store under test. It must be empty, or other tests must use other keys.
type Harness[Tx any] struct {
	Store idempotency.Store[Tx]
	// Begin starts a READ COMMITTED transaction in the store's database.
	Begin func(t *testing.T) (tx Tx, commit, rollback func() error)
}

// Run runs the suite. It calls open once for each test.
func Run[Tx any](t *testing.T, open func(t *testing.T) Harness[Tx]) {
	tests := []struct {
		name string
		run  func(*bench[Tx])
	}{
		{"one request after the other", (*bench[Tx]).sequence},
		{"only what commits counts", (*bench[Tx]).commits},
		{"release", (*bench[Tx]).releases},
		{"a lease that has run out", (*bench[Tx]).takeover},
		{"late, but not too late", (*bench[Tx]).late},
		{"a late owner in an open transaction", (*bench[Tx]).lateOpen},
		{"claim in a transaction", (*bench[Tx]).inside},
		{"claim in a transaction after a crash", (*bench[Tx]).insideTakeover},
		{"completed twice", (*bench[Tx]).twice},
		{"retention", (*bench[Tx]).retention},
		{"many old keys", (*bench[Tx]).manyOld},
		{"keys of others", (*bench[Tx]).scopes},
		{"content", (*bench[Tx]).content},
		{"many at once", (*bench[Tx]).crowd},
		{"many replays at once", (*bench[Tx]).replays},
		{"at random", (*bench[Tx]).random},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { test.run(&bench[Tx]{t, open(t)}) })
	}
}

type bench[Tx any] struct {
	*testing.T
	Harness[Tx]
}

var answer = idempotency.Answer{Status: 201, Header: http.Header{"Location": {"/orders/1"}}, Body: []byte(`{"id":1}`)}

// claim returns a claim on a key with a unique token.
func claim(key string) idempotency.Claim {
	return idempotency.Claim{
		ID:        idempotency.ID{Tenant: "acme", Principal: "ann", Route: "POST /orders", Key: key},
		Token:     rand.Text(),
		Lease:     time.Minute,
		Retention: time.Hour,
	}
}

// inside returns a claim that ends with its transaction.
func inside(c idempotency.Claim) idempotency.Claim {
	c.Token, c.Lease = rand.Text(), 0
	return c
}

func another(c idempotency.Claim) idempotency.Claim {
	c.Token = rand.Text()
	return c
}

func short(c idempotency.Claim) idempotency.Claim {
	c.Lease = 30 * time.Millisecond
	return c
}

func (b *bench[Tx]) ctx() context.Context { return b.Context() }

func (b *bench[Tx]) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench[Tx]) mustLose(err error) {
	b.Helper()
	if !errors.Is(err, idempotency.ErrLost) {
		b.Fatalf("%v; want ErrLost", err)
	}
}

// want claims c and expects a state.
func (b *bench[Tx]) want(c idempotency.Claim, state idempotency.State) {
	b.Helper()
	outcome, err := b.Store.Claim(b.ctx(), c)
	b.check(outcome, err, state)
}

func (b *bench[Tx]) wantIn(tx Tx, c idempotency.Claim, state idempotency.State) {
	b.Helper()
	outcome, err := b.Store.ClaimIn(b.ctx(), tx, c)
	b.check(outcome, err, state)
}

func (b *bench[Tx]) check(outcome idempotency.Outcome, err error, state idempotency.State) {
	b.Helper()
	if err != nil || outcome.State != state {
		b.Fatalf("%v, %v; want %v", outcome.State, err, state)
	}
	if state == idempotency.Done && !reflect.DeepEqual(outcome.Answer, answer) {
		b.Fatalf("answer %+v; want %+v", outcome.Answer, answer)
	}
}

// eventually claims c until it succeeds, to wait for a lease or retention to expire.
func (b *bench[Tx]) eventually(c idempotency.Claim) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; {
		outcome, err := b.Store.Claim(b.ctx(), c)
		if err != nil || time.Now().After(deadline) {
			b.Fatalf("still %v, %v", outcome.State, err)
		}
		if outcome.State == idempotency.Claimed {
			return
		}
	}
}
