// Package inboxtest is the suite that every [inbox.Store] passes.
package inboxtest

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
)

// Subject is a store under test, and a place in the same database to leave effects in.
type Subject[Tx any] struct {
	Store inbox.Store[Tx]
	// Window is what Open returns.
	Window time.Duration
	// Do runs f in a transaction of the application.
	Do func(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
	// Mark leaves an effect: it appends text to what Marks returns, in that transaction.
	Mark func(ctx context.Context, tx Tx, text string) error
	// Marks returns all that was committed, in the order of the commits, or in that of the calls where these cannot be told
	// apart.
	Marks func(ctx context.Context) []string
	// DeadLetters is the operator's side.
	DeadLetters admin.DeadLetters
	Gauges      admin.Gauges
}

// Open returns a store with nothing in it.
type Open[Tx any] func(t testing.TB) Subject[Tx]

// Run runs the suite, except for [RunWindow].
func Run[Tx any](t *testing.T, open Open[Tx]) {
	for name, test := range cases[Tx]() {
		t.Run(name, func(t *testing.T) { test(newScene(t, open(t))) })
	}
}

// RunWindow holds that a message has no second effect at whatever time it comes again. It lasts one and a half times as long as
// the window.
func RunWindow[Tx any](t *testing.T, s Subject[Tx]) { window(newScene(t, s)) }

// Failures runs the suite with a store that is thought to be wrong, and returns the names of the cases that notice.
func Failures[Tx any](t *testing.T, open Open[Tx]) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cases[Tx]())) {
		w := &witness{TB: t}
		s := newScene(w, open(t))
		done := make(chan struct{})
		go func() {
			defer close(done)
			cases[Tx]()[name](s)
		}()
		<-done
		if w.failed.Load() {
			names = append(names, name)
		}
	}
	return names
}

func cases[Tx any]() map[string]func(*scene[Tx]) {
	return map[string]func(*scene[Tx]){
		"once":                    once[Tx],
		"together":                together[Tx],
		"at the same time":        atTheSameTime[Tx],
		"two consumers":           twoConsumers[Tx],
		"batch":                   batch[Tx],
		"twice in a batch":        twiceInABatch[Tx],
		"batches in any order":    batchesInAnyOrder[Tx],
		"claim":                   claim[Tx],
		"blocked key":             blockedKey[Tx],
		"content":                 content[Tx],
		"no key":                  noKey[Tx],
		"defer what is recorded":  deferRecorded[Tx],
		"retry":                   retry[Tx],
		"outage":                  outage[Tx],
		"one at a time":           oneAtATime[Tx],
		"acts":                    acts[Tx],
		"acts meanwhile":          actsMeanwhile[Tx],
		"arrivals and departures": arrivals[Tx],
		"heard of":                heardOf[Tx],
		"late":                    late[Tx],
		"late and blocked":        lateAndBlocked[Tx],
		"history":                 history[Tx],
		"IDs without time":        withoutTime[Tx],
		"others' messages":        othersMessages[Tx],
		"model":                   model[Tx],
	}
}

// witness stands in for a test, and remembers that it has failed.
type witness struct {
	testing.TB
	failed atomic.Bool
}

func (w *witness) Helper()               {}
func (w *witness) Error(...any)          { w.failed.Store(true) }
func (w *witness) Errorf(string, ...any) { w.failed.Store(true) }
func (w *witness) Fatal(...any)          { w.FailNow() }
func (w *witness) Fatalf(string, ...any) { w.FailNow() }
func (w *witness) Fail()                 { w.failed.Store(true) }
func (w *witness) Failed() bool          { return w.failed.Load() }
func (w *witness) FailNow() {
	w.failed.Store(true)
	runtime.Goexit()
}
