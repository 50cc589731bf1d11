package doubt_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/layout"
	"github.com/postrider/postrider/relay/internal/doubt"
)

// TestPure: the book has no goroutine, clock, lock or I/O.
func TestPure(t *testing.T) {
	p := layout.Load(t)
	p.Uses([]string{"errors", "fmt", "maps", "math", "time", "github.com/postrider/postrider", "github.com/postrider/postrider/broker"},
		"time.Now", "time.Since", "time.Until", "time.After", "time.AfterFunc", "time.NewTimer", "time.Sleep", "broker.Recall")
	p.Structs(19)
}

var (
	start   = time.Unix(1_000_000, 0)
	errDown = errors.New("no answer")
)

// answer records that a name has answered, with the messages that it holds.
func answer(t *testing.T, b *doubt.Book, name string, ids ...postrider.ID) {
	t.Helper()
	for _, id := range ids {
		b.Found([]string{name}, id)
	}
	if wait, note := b.Answer(name, nil, start); wait != nil || note != nil {
		t.Fatalf("%s: %v, %v", name, wait, note)
	}
}

func ask(t *testing.T, b *doubt.Book, names []string, want []string, since time.Time) {
	t.Helper()
	if got, from := b.Question(names); !slices.Equal(got, want) || !from.Equal(since) {
		t.Fatalf("asks %q since %v, want %q since %v", got, from, want, since)
	}
}

// TestFormerOwners follows a shard from its take-over to the end of all doubts.
func TestFormerOwners(t *testing.T) {
	b := doubt.New(3, start)
	arrived, missing, later := postrider.NewID(), postrider.NewID(), postrider.NewID()
	if b.Idle() || b.Term() != 3<<20 {
		t.Fatalf("idle %t, term %d", b.Idle(), b.Term())
	}
	ask(t, b, []string{"a", "b"}, []string{"a", "b"}, start)
	if b.Term() != 3<<20+1 {
		t.Errorf("a question does not raise the term: %d", b.Term())
	}
	answer(t, b, "a", arrived, later)
	if wait, _ := b.Answer("b", errDown, start); !errors.Is(wait, errDown) || !b.Waits() {
		t.Error("a name that has not answered does not wait")
	}
	ask(t, b, []string{"a", "b"}, []string{"b"}, start)
	answer(t, b, "b")
	ask(t, b, []string{"a", "b"}, nil, time.Time{})
	for range 2 { // it may be asked for in every call
		if !b.Has(arrived) || b.Has(missing) {
			t.Error("what has arrived is sent, or what is missing is not")
		}
	}
	b.Defer("a", later)
	b.Close()
	if b.Idle() || !b.Has(later) || b.Has(arrived) || !b.Idle() {
		t.Error("a deferred message that has arrived is forgotten, or others are not")
	}
	ask(t, b, []string{"c"}, nil, time.Time{})
}

// TestDeferredNames: a message that is deferred before its name was asked keeps the doubts open.
func TestDeferredNames(t *testing.T) {
	b := doubt.New(1, start)
	id := postrider.NewID()
	b.Defer("a", id)
	if !b.Waits() {
		t.Fatal("the name was not asked")
	}
	ask(t, b, []string{"a"}, []string{"a"}, start)
	answer(t, b, "a", id)
	if b.Close(); b.Waits() || !b.Has(id) {
		t.Error("the message has arrived")
	}
	b.Defer("b", id)
	if !b.Idle() {
		t.Error("there is no doubt any more")
	}
}

// TestOwnMessages: of our own, only messages without an answer matter.
func TestOwnMessages(t *testing.T) {
	b := doubt.New(1, time.Time{})
	if !b.Idle() || !b.Since().IsZero() {
		t.Fatal("there is doubt from the beginning")
	}
	lost, lost2, other := postrider.NewID(), postrider.NewID(), postrider.NewID()
	b.Record("a", lost, start.Add(time.Second))
	b.Record("a", lost2, start)
	ask(t, b, []string{"b"}, nil, time.Time{})
	ask(t, b, []string{"a", "b"}, []string{"a"}, start)
	answer(t, b, "a", lost, other)
	if !b.Has(lost) || b.Has(lost) || b.Has(lost2) || b.Has(other) {
		t.Error("only the message without an answer that has arrived needs not be sent, once")
	}
	if !b.Idle() {
		t.Error("everything is known")
	}
}

// TestUnanswered: what an answer other than success leads to.
func TestUnanswered(t *testing.T) {
	reason := broker.CannotRecall("a reason")
	for _, c := range []struct {
		what        string
		err         error
		after       time.Duration // since the first question
		waits, note bool
	}{
		{"never can", broker.ErrCannotRecall, 0, false, false},
		{"cannot for a reason", reason, 0, false, true},
		{"fenced", postrider.Unavailable(broker.ErrFenced), time.Hour, true, false},
		{"not yet", errDown, time.Minute - 1, true, false},
		{"not for long", errDown, time.Minute, false, true},
		{"the name is away", postrider.NameUnavailable(errDown), time.Minute, false, true},
		{"the destination is away", postrider.Unavailable(errDown), time.Hour, true, false},
	} {
		b := doubt.New(1, start)
		b.Question([]string{"a"})
		_, _ = b.Answer("a", errDown, start)
		wait, note := b.Answer("a", c.err, start.Add(c.after))
		if (wait != nil) != c.waits || (note != nil) != c.note || b.Waits() != c.waits {
			t.Errorf("%s: waits %v, note %v", c.what, wait, note)
		}
	}
}

// TestFenced: a refusal by our own question changes nothing, another raises the terms ever faster.
func TestFenced(t *testing.T) {
	b := doubt.New(1, start)
	old := b.Term()
	b.Question([]string{"a"})
	if now := b.Term(); !b.Fenced(old) || b.Term() != now {
		t.Error("our own question was the reason")
	}
	for n := 0; b.Term() < 1<<50; n++ {
		if b.Fenced(b.Term()) || n > 10 {
			t.Fatalf("after %d refusals the term is %d", n, b.Term())
		}
	}
	for range 10 {
		b.Fenced(b.Term())
	}
	if term := b.Term(); term <= 0 || int64(float64(term)) != term {
		t.Errorf("the term %d is no number that floating point keeps", term)
	}
}

// TestBounded: nothing grows without a limit, and whatever is given up is said.
func TestBounded(t *testing.T) {
	b := doubt.New(1, start)
	said := false
	for n := 0; n < 2000; n++ {
		name := fmt.Sprint(n)
		b.Question([]string{name})
		_, note := b.Answer(name, nil, start)
		said = said || note != nil
	}
	if !said || !b.Idle() {
		t.Error("2000 names are kept")
	}
	b = doubt.New(1, start)
	b.Question([]string{"a"})
	for range 500_001 {
		b.Found([]string{"a"}, postrider.NewID())
	}
	if _, note := b.Answer("a", nil, start); note == nil {
		t.Error("there is no note that not all messages are remembered")
	}
}

// TestRecordedWhileAsked: an answer does not cover what was recorded after the question, which may
// have been sent before the time that was asked for.
func TestRecordedWhileAsked(t *testing.T) {
	for _, failure := range []error{nil, errDown} {
		b := doubt.New(1, time.Time{})
		first, second := postrider.NewID(), postrider.NewID()
		b.Record("a", first, start)
		ask(t, b, []string{"a"}, []string{"a"}, start)
		before := start.Add(-time.Minute)
		b.Record("a", second, before)
		if got := b.Unsure("a", second); !got.Equal(before) {
			t.Errorf("unsure since %v, want %v", got, before)
		}
		_, _ = b.Answer("a", failure, start)
		ask(t, b, []string{"a"}, []string{"a"}, before)
		answer(t, b, "a", second)
		if !b.Has(second) || b.Has(first) || !b.Idle() {
			t.Errorf("after %v and an answer: %t", failure, b.Idle())
		}
	}
}

// TestUnsure: since when a message may have arrived, for every reason that it may.
func TestUnsure(t *testing.T) {
	before, later := start.Add(-time.Minute), start.Add(time.Minute)
	b := doubt.New(1, start)
	own, other, former := postrider.NewID(), postrider.NewID(), postrider.NewID()
	unsure := func(name string, id postrider.ID, want time.Time) {
		t.Helper()
		if got := b.Unsure(name, id); !got.Equal(want) {
			t.Errorf("%s: unsure since %v, want %v", name, got, want)
		}
	}
	unsure("a", other, start) // a name that is unknown
	b.Record("a", own, before)
	unsure("a", own, before)
	unsure("a", other, start)
	ask(t, b, []string{"a"}, []string{"a"}, before)
	b.Record("a", other, later)
	unsure("a", other, later)
	unsure("a", former, start)
	b.Found([]string{"a"}, former)
	if _, note := b.Answer("a", nil, start); note != nil {
		t.Fatal(note)
	}
	unsure("a", former, start)
	ask(t, b, []string{"c"}, []string{"c"}, start)
	answer(t, b, "c")
	unsure("c", other, time.Time{})
	b.Close()
	unsure("b", other, time.Time{})
}
