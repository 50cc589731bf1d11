// Package inboxtest is the conformance test suite for implementations of [inbox.Store].
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

// Subject is a store under test, with a place in the same database to write test effects to.
type Subject[Tx any] struct {
	Store inbox.Store[Tx]
	// Window is what Open returns.
	Window time.Duration
	// Do runs f in a transaction of the application.
	Do func(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
	// Mark writes an effect in tx: it appends text to what Marks returns.
	Mark func(ctx context.Context, tx Tx, text string) error
	// Marks returns the committed effects, in the order of their commits or, if that is unknown, of
	// the calls.
	Marks func(ctx context.Context) []string
	// DeadLetters is the admin port of the store.
	DeadLetters admin.DeadLetters
	Gauges      admin.Gauges
}

// Open returns an empty store.
type Open[Tx any] func(t testing.TB) Subject[Tx]

// Run runs the suite, except for [RunWindow].
func Run[Tx any](t *testing.T, open Open[Tx]) {
	for name, test := range cases[Tx]() {
		t.Run(name, func(t *testing.T) { test(newScene(t, open(t))) })
	}
}

// RunWindow checks that a message has no second effect, whenever it is redelivered. It runs for one
// and a half times the window.
func RunWindow[Tx any](t *testing.T, s Subject[Tx]) { window(newScene(t, s)) }

// Failures runs the suite with a store that is expected to be wrong, and returns the names of the
// cases that fail.
func Failures[Tx any](t *testing.T, open Open[Tx]) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(cases[Tx]())) {
		w := &recorder{TB: t}
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
		"at the same time":        concurrently[Tx],
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
		"heard of":                heartbeats[Tx],
		"late":                    late[Tx],
		"late and blocked":        lateAndBlocked[Tx],
		"history":                 history[Tx],
		"IDs without time":        withoutTime[Tx],
		"others' messages":        othersMessages[Tx],
		"model":                   model[Tx],
	}
}

// recorder stands in for a test and records that it failed.
type recorder struct {
	testing.TB
	failed atomic.Bool
}

func (w *recorder) Helper()               {}
func (w *recorder) Error(...any)          { w.failed.Store(true) }
func (w *recorder) Errorf(string, ...any) { w.failed.Store(true) }
func (w *recorder) Fatal(...any)          { w.FailNow() }
func (w *recorder) Fatalf(string, ...any) { w.FailNow() }
func (w *recorder) Fail()                 { w.failed.Store(true) }
func (w *recorder) Failed() bool          { return w.failed.Load() }
func (w *recorder) FailNow() {
	w.failed.Store(true)
	runtime.Goexit()
}
