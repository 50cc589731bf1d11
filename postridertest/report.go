package postridertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Report is what has happened in a [World] since it was made. Its lists are in chronological order.
type Report struct {
	Enqueued, Sent, Unconfirmed, Received, Handled, Repeated, Failed []Step

	// Dead are the dead letters of the relay and of inboxes.
	Dead []feeds.Deferred
	// Later are the other deferred messages: they are not due yet, wait for an earlier one of their
	// key, or are parked.
	Later []feeds.Deferred
	// Pending is the number of committed messages that the relay has not settled.
	Pending int
	// Settled means that nothing more could be done at the time.
	Settled bool
	// Steps are all steps.
	Steps []Step

	began time.Time
}

// longTable is the maximum number of steps shown: half of them from the beginning, half from the
// end.
const longTable = 200

// Report returns a report of what has happened so far.
func (w *World) Report() *Report {
	r := &Report{Settled: w.unquiet == "", Steps: w.journal.all(), began: w.journal.began}
	lists := map[What]*[]Step{
		Enqueued: &r.Enqueued, Sent: &r.Sent, Unconfirmed: &r.Unconfirmed, Received: &r.Received, Handled: &r.Handled,
		Repeated: &r.Repeated, Failed: &r.Failed,
	}
	for _, s := range r.Steps {
		if list := lists[s.What]; list != nil {
			*list = append(*list, s)
		}
	}
	for _, d := range w.deferred() {
		if d.Status == feeds.StatusDead {
			r.Dead = append(r.Dead, d)
		} else {
			r.Later = append(r.Later, d)
		}
	}
	r.Pending, _ = w.pending()
	return r
}

// Summary returns the numbers in one line.
func (r *Report) Summary() string {
	text := fmt.Sprintf("%d enqueued, %d sent, %d unconfirmed, %d received, %d handled, %d repeated, %d failed, %d dead, %d later, %d pending",
		len(r.Enqueued), len(r.Sent), len(r.Unconfirmed), len(r.Received), len(r.Handled), len(r.Repeated), len(r.Failed),
		len(r.Dead), len(r.Later), r.Pending)
	if !r.Settled {
		text += ", not settled"
	}
	return text
}

// String returns the numbers and a table of all steps. It numbers messages in the order in which
// they first appear.
func (r *Report) String() string {
	var b strings.Builder
	b.WriteString(r.Summary() + "\n")
	numbers := make(map[postrider.ID]string)
	number := func(m postrider.Message) string {
		if m.Type == "" {
			return ""
		}
		if numbers[m.ID] == "" {
			numbers[m.ID] = fmt.Sprintf("#%d", len(numbers)+1)
		}
		return numbers[m.ID]
	}
	var rows [][]string
	for i, s := range r.Steps {
		if hidden := len(r.Steps) - longTable; hidden > 0 && i >= longTable/2 && i < longTable/2+hidden {
			if i == longTable/2 {
				rows = append(rows, []string{"…", fmt.Sprintf("(%d more)", hidden), "", "", "", "", "", "", ""})
			}
			continue
		}
		m := s.Message
		rows = append(rows, []string{
			"+" + s.At.Sub(r.began).Round(time.Millisecond).String(), string(s.What), s.By, number(m), m.Type, m.OrderKey(), m.Topic,
			short(m.Payload), s.Err,
		})
	}
	b.WriteString(table([]string{"time", "what", "by", "no.", "type", "key", "topic", "payload", "error"}, rows))
	rows = nil
	for _, d := range append(r.Dead[:len(r.Dead):len(r.Dead)], r.Later...) {
		due := ""
		if !d.AvailableAt.IsZero() {
			due = "+" + d.AvailableAt.Sub(r.began).Round(time.Millisecond).String()
		}
		rows = append(rows, []string{d.Feed, string(d.Status), number(d.Message), d.Type, d.OrderKey(), fmt.Sprint(d.Attempts), due, d.LastError})
	}
	if len(rows) > 0 {
		b.WriteString("deferred:\n")
		b.WriteString(table([]string{"where", "status", "no.", "type", "key", "attempts", "due", "error"}, rows))
	}
	return strings.TrimRight(b.String(), "\n")
}

// Require fails the test and shows the report, unless a step of the given kind happened to a
// matching message. It returns the first such step. An empty what matches every kind.
func (r *Report) Require(t testing.TB, what What, want Match) Step {
	t.Helper()
	for _, s := range r.Steps {
		if (what == "" || s.What == what) && s.Message.Type != "" && want.Mismatch(s.Message) == "" {
			return s
		}
	}
	t.Fatalf("postridertest: no message was %s that matches %v\n%v", what, want, r)
	return Step{}
}

// RequireNone fails the test and shows the report, if a step of the given kind happened to a
// matching message.
func (r *Report) RequireNone(t testing.TB, what What, unwanted Match) {
	t.Helper()
	for _, s := range r.Steps {
		if (what == "" || s.What == what) && s.Message.Type != "" && unwanted.Mismatch(s.Message) == "" {
			t.Fatalf("postridertest: a message was %s that matches %v\n%v", s.What, unwanted, r)
		}
	}
}

// RequireClean fails the test and shows the report, if anything is left: a dead letter, a deferred
// message, or a message that was not sent.
func (r *Report) RequireClean(t testing.TB) {
	t.Helper()
	if !r.Settled || len(r.Dead)+len(r.Later)+r.Pending > 0 {
		t.Fatalf("postridertest: not everything has arrived\n%v", r)
	}
}
