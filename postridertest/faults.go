package postridertest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// SeedVariable is the environment variable that sets the seed of [Faults] without one.
const SeedVariable = "POSTRIDERTEST_SEED"

// ErrInjected matches every error that a fault causes.
var ErrInjected = errors.New("postridertest: injected fault")

// Faults configures which faults to inject. The zero value injects none.
type Faults struct {
	// Seed determines what [Sometimes] strikes. Defaults to the environment variable
	// [SeedVariable], or else to a random number, which a failing test logs.
	Seed uint64

	// Duplicate publishes a message a second time, after the others of its call. Defaults to never.
	Duplicate When
	// LoseAnswer publishes a message, and reports to the relay that the outcome is unknown, for
	// that message and for later ones of its key. Defaults to never.
	LoseAnswer When
	// Crash publishes a message, and then crashes the relay's process: nothing of the whole call is
	// recorded, and that [Process] does nothing more. Without a Process, only the answers are lost.
	// Defaults to never.
	Crash When
	// Refuse refuses a message with [postrider.Permanent]. Defaults to never.
	Refuse When
	// Outage refuses a message with [postrider.Unavailable]. Defaults to never.
	Outage When
	// Slow delays the publishing of a message by Delay. Defaults to never.
	Slow When
	// Delay is the delay of Slow. Defaults to 100 ms.
	Delay time.Duration
	// Reorder lets the next message of another key in the same call overtake a message, as brokers
	// with partitions do. Defaults to never.
	Reorder When
	// ReorderKey lets the next message of the same key in the same call overtake a message. No
	// broker should do that; use it to test that a consumer notices. Defaults to never.
	ReorderKey When

	// LoseAck has a message handled and delivered again, as if the acknowledgement had not reached
	// the broker. Defaults to never.
	LoseAck When
	// LoseCommit has an inbox handle a message and roll the transaction back, as if the consumer
	// had crashed just before its commit. The message is delivered again. Defaults to never.
	LoseCommit When
}

// Injector injects faults. It is safe for concurrent use. If calls are concurrent, in relays of
// several shards or consumers of several keys, [Every] and [Nth] strike whichever message comes
// first; [Sometimes] strikes the same messages each time.
type Injector struct {
	seed  uint64
	delay time.Duration

	mu      sync.Mutex
	process *Process // that Crash kills

	duplicate, loseAnswer, crash, refuse, outage, slow, reorder, reorderKey, loseAck, loseCommit tally
}

// Inject returns an injector of the faults. If the test fails, it logs the seed and how often each
// fault has struck.
func Inject(t testing.TB, f Faults) *Injector {
	t.Helper()
	if f.Seed == 0 {
		f.Seed = rand.Uint64()
		if text := os.Getenv(SeedVariable); text != "" {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatalf("postridertest: %s is %q, want a number", SeedVariable, text)
			}
			f.Seed = seed
		}
	}
	if f.Delay == 0 {
		f.Delay = 100 * time.Millisecond
	}
	in := &Injector{
		seed: f.Seed, delay: f.Delay,
		duplicate:  tally{name: "Duplicate", when: f.Duplicate},
		loseAnswer: tally{name: "LoseAnswer", when: f.LoseAnswer},
		crash:      tally{name: "Crash", when: f.Crash},
		refuse:     tally{name: "Refuse", when: f.Refuse},
		outage:     tally{name: "Outage", when: f.Outage},
		slow:       tally{name: "Slow", when: f.Slow},
		reorder:    tally{name: "Reorder", when: f.Reorder},
		reorderKey: tally{name: "ReorderKey", when: f.ReorderKey},
		loseAck:    tally{name: "LoseAck", when: f.LoseAck},
		loseCommit: tally{name: "LoseCommit", when: f.LoseCommit},
	}
	t.Cleanup(func() {
		if t.Failed() && in.planned() {
			t.Logf("postridertest: faults by seed %d (to repeat: %s=%d): %s", in.seed, SeedVariable, in.seed, in)
		}
	})
	return in
}

// Seed returns the seed in use.
func (in *Injector) Seed() uint64 { return in.seed }

// Struck returns how often each fault has struck, by the name of its field in [Faults]. It contains
// configured faults that have not struck, with 0: a test that relies on one of those proves
// nothing.
func (in *Injector) Struck() map[string]int {
	in.mu.Lock()
	defer in.mu.Unlock()
	struck := make(map[string]int)
	for _, t := range in.tallies() {
		if t.when.strike != nil {
			_, struck[t.name] = t.total()
		}
	}
	return struck
}

// String describes how often each fault has struck.
func (in *Injector) String() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	var parts []string
	for _, t := range in.tallies() {
		if t.when.strike != nil {
			came, struck := t.total()
			parts = append(parts, fmt.Sprintf("%s %d of %d", t.name, struck, came))
		}
	}
	if len(parts) == 0 {
		return "no faults"
	}
	return strings.Join(parts, ", ")
}

func (in *Injector) tallies() []*tally {
	return []*tally{&in.duplicate, &in.loseAnswer, &in.crash, &in.refuse, &in.outage, &in.slow, &in.reorder, &in.reorderKey,
		&in.loseAck, &in.loseCommit}
}

func (in *Injector) planned() bool {
	for _, t := range in.tallies() {
		if t.when.strike != nil {
			return true
		}
	}
	return false
}

// apart returns a separate tally of the fault for one consumer, so that other consumers do not
// influence what it strikes.
func (in *Injector) apart(t *tally) *tally {
	in.mu.Lock()
	defer in.mu.Unlock()
	return t.fork()
}

// strikes reports whether a fault strikes a message.
func (in *Injector) strikes(t *tally, m *postrider.Message) bool {
	in.mu.Lock()
	defer in.mu.Unlock()
	return t.strikes(in.seed, m)
}

func injected(what string) error { return fmt.Errorf("%w: %s", ErrInjected, what) }
