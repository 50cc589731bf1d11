package postridertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/postrider/postrider"
)

// View is a part of the messages of a [Recorder], for assertions. It changes as more messages are
// recorded.
type View struct {
	log *enqueuedLog
	one bool // transaction
	tx  any
}

// All returns the messages that were enqueued.
func (v View) All() []postrider.Message {
	var all []postrider.Message
	shown, _ := v.entries()
	for _, e := range shown {
		all = append(all, copyMessage(e.Message))
	}
	return all
}

// Enqueued fails the test unless a matching message was enqueued. It returns the first one.
func (v View) Enqueued(t testing.TB, want Match) postrider.Message {
	t.Helper()
	all := v.All()
	for _, m := range all {
		if want.Mismatch(m) == "" {
			return m
		}
	}
	t.Fatalf("postridertest: no message was enqueued that matches %v\n%s", want, v.describe(func(_ int, m postrider.Message) string {
		return want.Mismatch(m)
	}))
	return postrider.Message{}
}

// InOrder fails the test unless matching messages were enqueued in this order, possibly with others
// between them. It returns the matching messages.
func (v View) InOrder(t testing.TB, want ...Match) []postrider.Message {
	t.Helper()
	var found []postrider.Message
	var at []int
	all := v.All()
	for i, m := range all {
		if len(found) < len(want) && want[len(found)].Mismatch(m) == "" {
			found = append(found, m)
			at = append(at, i)
		}
	}
	if len(found) == len(want) {
		return found
	}
	after := -1 // index after which the rest was searched
	if len(at) > 0 {
		after = at[len(at)-1]
	}
	next := want[len(found)]
	t.Fatalf("postridertest: %d of %d messages were enqueued in this order; what is missing then is %v\n%s", len(found), len(want), next,
		v.describe(func(i int, m postrider.Message) string {
			for n, place := range at {
				if place == i {
					return fmt.Sprintf("is number %d", n+1)
				}
			}
			if i < after {
				if next.Mismatch(m) == "" {
					return "matches, but comes too early"
				}
				return ""
			}
			return next.Mismatch(m)
		}))
	return nil
}

// Exactly fails the test unless the enqueued messages match one by one, in this order, and there
// are no others. It returns them.
func (v View) Exactly(t testing.TB, want ...Match) []postrider.Message {
	t.Helper()
	all := v.All()
	wrong := len(all) != len(want)
	for i := range min(len(all), len(want)) {
		wrong = wrong || want[i].Mismatch(all[i]) != ""
	}
	if !wrong {
		return all
	}
	var b strings.Builder
	for i := len(all); i < len(want); i++ {
		fmt.Fprintf(&b, "number %d is missing: %v\n", i+1, want[i])
	}
	t.Fatalf("postridertest: %d messages were enqueued, want exactly %d that match\n%s%s", len(all), len(want), &b,
		v.describe(func(i int, m postrider.Message) string {
			if i >= len(want) {
				return "is too many"
			}
			return want[i].Mismatch(m)
		}))
	return nil
}

// RequireNone fails the test if a message was enqueued that matches one of the descriptions.
// Without descriptions, it fails if any message was enqueued.
func (v View) RequireNone(t testing.TB, unwanted ...Match) {
	t.Helper()
	if len(unwanted) == 0 {
		unwanted = []Match{{}}
	}
	matches := func(m postrider.Message) string {
		for _, u := range unwanted {
			if u.Mismatch(m) == "" {
				return "matches " + u.String()
			}
		}
		return ""
	}
	n := 0
	for _, m := range v.All() {
		if matches(m) != "" {
			n++
		}
	}
	if n > 0 {
		t.Fatalf("postridertest: %d messages were enqueued that should not have been\n%s", n,
			v.describe(func(_ int, m postrider.Message) string { return matches(m) }))
	}
}

// entries returns what counts as enqueued in this view, and the rest.
func (v View) entries() (shown, others []enqueued) {
	v.log.mu.Lock()
	defer v.log.mu.Unlock()
	for _, e := range v.log.entries {
		own := !v.one || sameTx(e.tx, v.tx)
		if own && (e.fate == committed || e.fate == unseen || v.one && e.fate == open) {
			shown = append(shown, *e)
		} else {
			others = append(others, *e)
		}
	}
	return shown, others
}

// describe lists what was enqueued, with a remark on each message, and what does not count.
func (v View) describe(remark func(i int, m postrider.Message) string) string {
	shown, others := v.entries()
	var b strings.Builder
	if len(shown) == 0 {
		b.WriteString("nothing was enqueued\n")
	} else {
		fmt.Fprintf(&b, "enqueued: %d\n", len(shown))
	}
	var rows [][]string
	for i, e := range shown {
		rows = append(rows, append(describe(e.Message), remark(i, e.Message)))
	}
	b.WriteString(table([]string{"#", "type", "key", "dedup key", "payload", ""}, numbered(rows)))
	if len(others) > 0 {
		rows = nil
		for _, e := range others {
			why := string(e.fate)
			if v.one && !sameTx(e.tx, v.tx) {
				why += ", by another transaction"
			}
			if e.note != "" {
				why += ": " + e.note
			}
			rows = append(rows, append(describe(e.Message), why))
		}
		fmt.Fprintf(&b, "not counted: %d\n", len(others))
		b.WriteString(table([]string{"#", "type", "key", "dedup key", "payload", "because"}, numbered(rows)))
	}
	return strings.TrimRight(b.String(), "\n")
}

func describe(m postrider.Message) []string {
	return []string{m.Type, m.OrderKey(), m.DedupKey, short(m.Payload)}
}
