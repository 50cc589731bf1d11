package relay

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// model is the dumb window: a list of all messages there ever were, which is searched from the first unconfirmed
// one on for everything.
type model struct {
	keepsOrder bool
	limit      int
	all        []modelMessage
	from       int // all before it are confirmed; it only saves time
}

type modelMessage struct {
	key    string
	state  state
	held   bool
	due    time.Time
	faults int
}

func (m *model) first() int {
	for m.from < len(m.all) && m.all[m.from].state == confirmedState {
		m.from++
	}
	return m.from
}

func (m *model) pick(now time.Time, end int, wary bool) (picked []int, due time.Time) {
	for i := m.first(); i < len(m.all); i++ {
		msg := &m.all[i]
		msg.held = msg.held && msg.due.After(now)
		if msg.held && (due.IsZero() || msg.due.Before(due)) {
			due = msg.due
		}
	}
	for most := range 100 { // the faults that a message may have
		if picked = m.pickMild(end, most, wary); len(picked) > 0 {
			return picked, time.Time{}
		}
	}
	return nil, due
}

func (m *model) pickMild(end, most int, wary bool) (picked []int) {
	blocked := make(map[string]bool)
	for i := m.first(); i < end && len(picked) < m.limit; i++ {
		msg := &m.all[i]
		if msg.state == confirmedState || msg.state == asideState || blocked[msg.key] {
			continue
		}
		may := !msg.held && (!wary || msg.faults <= most)
		if may {
			picked = append(picked, i)
		}
		blocked[msg.key] = msg.key != "" && (!may || !m.keepsOrder)
	}
	return picked
}

func (m *model) seam(patience time.Time) int {
	first, seam := m.first(), m.first()
	for i := first; i < len(m.all); i++ {
		if msg := m.all[i]; msg.state == confirmedState {
			seam = i
		}
	}
	for i := first; i < seam; i++ {
		if msg := m.all[i]; msg.held && msg.due.After(patience) {
			seam = i
		}
	}
	for seam > first && m.all[seam].state != confirmedState {
		seam--
	}
	return seam
}

// TestWindow compares the window with the model over random histories: what is picked, what is confirmed, where a
// draining lane may end; and checks the promise itself, which does not depend on the model.
func TestWindow(t *testing.T) {
	seeds := uint64(100)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		h := newHistory(t, seed)
		for range 150 {
			h.step()
		}
		h.finish()
		if t.Failed() {
			t.Fatalf("seed %d, %+v", seed, h)
		}
	}
}

// history is a random life of a window.
type history struct {
	t      *testing.T
	random *rand.Rand
	w      window
	m      model
	now    time.Time

	keys     int
	page     int     // largest batch
	failures float64 // share of messages
	faithful bool    // the publisher does keep order if it says so

	asides  []int           // to be set aside
	blocked map[string]bool // keys whose messages are

	batches []*postrider.Batch // not all of whose messages are confirmed
	done    int                // how many messages of the first of them are
}

func newHistory(t *testing.T, seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 7))
	keepsOrder, limit := seed%2 == 0, 1+r.IntN(20)
	return &history{
		t: t, random: r, now: time.Unix(0, 0),
		w:    newWindow(keepsOrder, limit),
		m:    model{keepsOrder: keepsOrder, limit: limit},
		keys: 1 + r.IntN(30), page: 1 + r.IntN(60), failures: []float64{0, 0.02, 0.2, 0.7}[r.IntN(4)],
		faithful: r.IntN(4) > 0, blocked: make(map[string]bool),
	}
}

func (h *history) step() {
	if len(h.m.all)-h.m.first() < 300 && h.random.IntN(3) > 0 {
		h.push()
	}
	h.now = h.now.Add(time.Duration(h.random.IntN(5)) * time.Second)
	patience := h.now.Add(4 * time.Second)
	seam := h.w.seam(patience)
	if want := h.m.seam(patience); seam != want {
		h.t.Errorf("the seam is at %d, want %d", seam, want)
	}
	end := h.w.end
	if h.random.IntN(4) == 0 {
		end = seam
	}
	h.call(end, h.random.IntN(3) == 0)
	if h.random.IntN(3) == 0 {
		h.release()
	}
}

func (h *history) push() {
	b := new(postrider.Batch)
	for range 1 + h.random.IntN(h.page) {
		m := postrider.Message{Type: strconv.Itoa(len(h.m.all))}
		if k := h.random.IntN(h.keys + 1); k > 0 {
			m.Key = "k" + strconv.Itoa(k)
		}
		b.Messages = append(b.Messages, m)
		h.m.all = append(h.m.all, modelMessage{key: m.Key})
	}
	h.batches = append(h.batches, b)
	at := h.w.end
	h.w.add(b)
	for i, m := range b.Messages {
		if h.blocked[m.Key] {
			h.setAside(at + i)
		}
	}
}

func (h *history) setAside(pos int) {
	h.w.setAside(pos)
	h.m.all[pos].state, h.m.all[pos].held = asideState, false
	h.asides = append(h.asides, pos)
}

// refuse sets a message aside and, half of the time, those of its key behind it.
func (h *history) refuse(pos int) {
	key := h.m.all[pos].key
	strict := key != "" && h.random.IntN(2) == 0
	behind := h.w.order.behind(pos)
	h.setAside(pos)
	if !strict {
		return
	}
	h.blocked[key] = true
	for p := pos + 1; p < len(h.m.all); p++ {
		msg := h.m.all[p]
		if msg.key != key || msg.state == confirmedState || msg.state == asideState {
			continue
		}
		if len(behind) == 0 || behind[0] != p {
			h.t.Errorf("%d stands behind %d, but is not among %v", p, pos, behind)
			return
		}
		h.setAside(p)
		behind = behind[1:]
	}
	if len(behind) > 0 {
		h.t.Errorf("%v do not stand behind %d", behind, pos)
	}
}

// release notes that what was to be set aside has been, and frees keys now and then.
func (h *history) release() {
	for _, pos := range h.asides {
		h.w.release(pos)
		h.m.all[pos].state = confirmedState
	}
	h.asides = nil
	if h.random.IntN(2) == 0 {
		clear(h.blocked)
	}
	h.advance()
}

func (h *history) call(end int, wary bool) {
	want, wantDue := h.m.pick(h.now, end, wary)
	call, due := h.w.pick(h.now, end, wary)
	if h.random.IntN(10) == 0 {
		call, due = h.w.pick(h.now, end, wary) // the lease had run out meanwhile
	}
	var got []int
	for i := range call {
		pos, _ := strconv.Atoi(call[i].Type)
		got = append(got, pos)
	}
	if !slices.Equal(got, want) || !due.Equal(wantDue) {
		h.t.Errorf("picked %v, due %v; want %v, due %v", got, due, want, wantDue)
		return
	}
	h.promise(got)
	if len(got) == 0 {
		return
	}
	repeated := 0
	for _, pos := range got {
		if h.m.all[pos].state != freshState {
			repeated++
		}
	}
	if h.w.repeated != repeated {
		h.t.Errorf("%d messages of the call are repeated, want %d", h.w.repeated, repeated)
	}
	h.answer(got)
	h.advance()
}

// promise: no message is sent while an earlier one of its key is unconfirmed, unless both are in one call of a
// publisher that keeps order.
func (h *history) promise(call []int) {
	for i, pos := range call {
		msg := h.m.all[pos]
		if msg.state == confirmedState {
			h.t.Errorf("%d is sent again", pos)
		}
		for earlier := h.m.first(); earlier < pos; earlier++ {
			other := h.m.all[earlier]
			if msg.key == "" || other.key != msg.key || other.state == confirmedState || other.state == asideState {
				continue
			}
			if !h.w.keepsOrder || !slices.Contains(call[:i], earlier) {
				h.t.Errorf("%d is sent before %d is confirmed", pos, earlier)
			}
		}
	}
}

var errTest = errors.New("a failure")

// answer lets the call fail in parts.
func (h *history) answer(call []int) {
	errs := make([]error, len(call))
	failed := make(map[string]bool)
	for i, pos := range call {
		key := h.m.all[pos].key
		if h.random.Float64() < h.failures || failed[key] && h.w.keepsOrder && h.faithful {
			errs[i] = errTest
			failed[key] = key != ""
		}
	}
	confirmed, failures := h.w.record(errs)
	for i, pos := range call {
		if errs[i] == nil {
			h.m.all[pos].state = confirmedState
			confirmed--
		}
	}
	for i, pos := range call {
		msg := &h.m.all[pos]
		if errs[i] == nil {
			continue
		}
		failures--
		if msg.state == asideState {
			continue // with an earlier one of its key
		}
		if h.random.IntN(5) == 0 {
			h.refuse(pos)
			continue
		}
		msg.state = failedState
		msg.held, msg.due = true, h.now.Add(time.Duration(1+h.random.IntN(10))*time.Second)
		if h.random.IntN(2) == 0 {
			msg.faults++
			h.w.order.blame(pos, 0, false)
		}
		h.w.order.hold(pos, msg.due)
	}
	if confirmed != 0 || failures != 0 {
		h.t.Errorf("record is wrong by %d confirmed and %d failed", confirmed, failures)
	}
}

// advance compares the mark with the model.
func (h *history) advance() {
	n, batch, done := h.w.advance()
	var wantBatch *postrider.Batch
	for rest := n; rest > 0; {
		wantBatch = h.batches[0]
		step := min(rest, len(wantBatch.Messages)-h.done)
		rest, h.done = rest-step, h.done+step
		if rest == 0 && (batch != wantBatch || done != h.done) {
			h.t.Errorf("marked %d of a batch, want %d", done, h.done)
		}
		if h.done == len(wantBatch.Messages) {
			h.batches, h.done = h.batches[1:], 0
		}
	}
	if h.w.first != h.m.first() || h.w.passed != h.w.first {
		h.t.Errorf("the prefix ends at %d and was told to end at %d, want %d", h.w.first, h.w.passed, h.m.first())
	}
}

// finish lets all succeed: nothing is lost, and nothing is left behind.
func (h *history) finish() {
	h.failures = 0
	h.release()
	for h.m.first() < len(h.m.all) && !h.t.Failed() {
		h.now = h.now.Add(time.Minute)
		h.call(h.w.end, false)
	}
	h.call(h.w.end, false)
	o := &h.w.order
	if !h.w.empty() || len(h.w.runs)+len(o.keys)+len(o.held)+o.failed+o.beyond+o.asides > 0 {
		h.t.Errorf("something was left behind: %d runs, %d keys, %d held, %d failed, %d beyond, %d aside",
			len(h.w.runs), len(o.keys), len(o.held), o.failed, o.beyond, o.asides)
	}
	if h.w.tracked == h.w.keepsOrder {
		h.t.Error("the bookkeeping goes on without need, or has ended in spite of it")
	}
}

func (h *history) String() string {
	return fmt.Sprintf("keepsOrder %v, limit %d, %d keys", h.m.keepsOrder, h.m.limit, h.keys)
}
