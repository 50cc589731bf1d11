package shard

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// model is the simple window: a list of all messages, searched from the first unconfirmed one each
// time.
type model struct {
	keepsOrder bool
	limit      int
	all        []modelMessage
	from       int // all messages before it are confirmed; saves time only
}

type modelMessage struct {
	key   string
	state state
	tries int
}

func (m *model) first() int {
	for m.from < len(m.all) && m.all[m.from].state == confirmed {
		m.from++
	}
	return m.from
}

func (m *model) pick(leastTried, strict bool) (picked []int) {
	if !leastTried {
		return m.pickTried(math.MaxInt, true)
	}
	for most := range 100 {
		if picked = m.pickTried(most, strict); len(picked) > 0 {
			return picked
		}
	}
	return nil
}

// pickTried picks messages with at most the given number of attempts and, if strict, none behind
// one of the same key with more.
func (m *model) pickTried(most int, strict bool) (picked []int) {
	behind := make(map[string]bool)
	for i := m.first(); i < len(m.all) && len(picked) < m.limit; i++ {
		msg := &m.all[i]
		if msg.state > failed || behind[msg.key] {
			continue
		}
		may := msg.tries <= most
		if may {
			picked = append(picked, i)
		}
		behind[msg.key] = msg.key != "" && (!m.keepsOrder || strict && !may)
	}
	return picked
}

func (m *model) gaps() (all []int) {
	last := -1
	for i := m.first(); i < len(m.all); i++ {
		if m.all[i].state == confirmed {
			last = i
		}
	}
	for i := m.first(); i < last; i++ {
		if m.all[i].state <= failed {
			all = append(all, i)
		}
	}
	return all
}

// TestWindow compares the window with the model over random histories: which messages are picked
// and confirmed, and what a stop would repeat. It also checks the ordering guarantee, independently
// of the model.
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
			t.Fatalf("seed %d, %v", seed, h)
		}
	}
}

// history is a random history of a window.
type history struct {
	t      *testing.T
	random *rand.Rand
	w      window
	m      model

	keys     int
	page     int     // largest batch
	failures float64 // share of messages
	faithful bool    // the publisher really keeps order if it claims to

	leaving []int           // to be deferred
	blocked map[string]bool // keys with deferred messages

	batches []*feeds.Batch // batches that are not confirmed completely
	done    int            // number of confirmed messages of the first of them
}

func newHistory(t *testing.T, seed uint64) *history {
	r := rand.New(rand.NewPCG(seed, 7))
	keepsOrder, limit := seed%2 == 0, 1+r.IntN(20)
	return &history{
		t: t, random: r,
		w:    newWindow(keepsOrder),
		m:    model{keepsOrder: keepsOrder, limit: limit},
		keys: 1 + r.IntN(30), page: 1 + r.IntN(60), failures: []float64{0, 0.02, 0.2, 0.7}[r.IntN(4)],
		faithful: r.IntN(4) > 0, blocked: make(map[string]bool),
	}
}

func (h *history) step() {
	if len(h.m.all)-h.m.first() < 300 && h.random.IntN(3) > 0 {
		h.push()
	}
	if got, want := h.w.gaps(), h.m.gaps(); !slices.Equal(got, want) {
		h.t.Errorf("the gaps are %v, want %v", got, want)
	}
	h.call(h.random.IntN(3) == 0, h.random.IntN(2) == 0)
	if h.random.IntN(3) == 0 {
		h.endDefer()
	}
}

func (h *history) push() {
	b := new(feeds.Batch)
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
	h.w.add(b, Size(b))
	for i, m := range b.Messages {
		if h.blocked[m.Key] {
			h.beginDefer(at + i)
		}
	}
}

func (h *history) beginDefer(pos int) {
	h.w.beginDefer(pos)
	h.m.all[pos].state = deferring
	h.leaving = append(h.leaving, pos)
}

// refuse defers a message and, half of the time, those of its key behind it.
func (h *history) refuse(pos int) {
	key := h.m.all[pos].key
	strict := key != "" && h.random.IntN(2) == 0
	behind := h.w.order.behind(pos)
	h.beginDefer(pos)
	if !strict {
		return
	}
	h.blocked[key] = true
	for p := pos + 1; p < len(h.m.all); p++ {
		msg := h.m.all[p]
		if msg.key != key || msg.state > failed {
			continue
		}
		if len(behind) == 0 || behind[0] != p {
			h.t.Errorf("%d stands behind %d, but is not among %v", p, pos, behind)
			return
		}
		h.beginDefer(p)
		behind = behind[1:]
	}
	if len(behind) > 0 {
		h.t.Errorf("%v do not stand behind %d", behind, pos)
	}
}

// endDefer completes the deferrals, and unblocks keys now and then.
func (h *history) endDefer() {
	for _, pos := range h.leaving {
		h.w.endDefer(pos)
		h.m.all[pos].state = confirmed
	}
	h.leaving = nil
	if h.random.IntN(2) == 0 {
		clear(h.blocked)
	}
	h.advance()
}

func (h *history) call(leastTried, strict bool) {
	want := h.m.pick(leastTried, strict)
	c := choice{messages: h.m.limit, bytes: math.MaxInt, leastTried: leastTried, strict: strict}
	call := h.w.pick(c)
	if h.random.IntN(10) == 0 {
		call = h.w.pick(c) // the lease had expired in between
	}
	var got []int
	for i := range call {
		pos, _ := strconv.Atoi(call[i].Type)
		got = append(got, pos)
	}
	if !slices.Equal(got, want) {
		h.t.Errorf("picked %v, want %v", got, want)
		return
	}
	if strict || !leastTried {
		h.promise(got)
	}
	if len(got) == 0 {
		return
	}
	repeated := 0
	for _, pos := range got {
		if h.m.all[pos].state != fresh {
			repeated++
		}
	}
	if h.w.repeated != repeated {
		h.t.Errorf("%d messages of the call are repeated, want %d", h.w.repeated, repeated)
	}
	h.w.flying = true
	if h.random.IntN(4) == 0 {
		h.endDefer()
	}
	h.answer(got)
	h.advance()
}

// promise checks that no message is sent while an earlier one of its key is unconfirmed, unless
// both are in one call of a publisher that keeps order.
func (h *history) promise(call []int) {
	for i, pos := range call {
		msg := h.m.all[pos]
		if msg.state == confirmed {
			h.t.Errorf("%d is sent again", pos)
		}
		for earlier := h.m.first(); earlier < pos; earlier++ {
			other := h.m.all[earlier]
			if msg.key == "" || other.key != msg.key || other.state > failed {
				continue
			}
			if !h.w.keepsOrder || !slices.Contains(call[:i], earlier) {
				h.t.Errorf("%d is sent before %d is confirmed", pos, earlier)
			}
		}
	}
}

var errTest = errors.New("a failure")

// answer makes parts of the call fail.
func (h *history) answer(call []int) {
	errs := make([]error, len(call))
	stuck := make(map[string]bool)
	for i, pos := range call {
		key := h.m.all[pos].key
		if h.random.Float64() < h.failures || stuck[key] && h.w.keepsOrder && h.faithful {
			errs[i] = errTest
			stuck[key] = key != ""
		}
	}
	passed, failures := h.w.record(errs)
	for i, pos := range call {
		if errs[i] == nil {
			h.m.all[pos].state = confirmed
			passed--
		}
	}
	for i, pos := range call {
		msg := &h.m.all[pos]
		if errs[i] == nil {
			continue
		}
		failures--
		if msg.state == deferring {
			continue // deferred with an earlier one of its key
		}
		msg.state = failed
		if h.random.IntN(5) == 0 {
			h.refuse(pos)
			continue
		}
		if h.random.IntN(2) == 0 {
			msg.tries++
			h.w.order.blame(pos, 0, false)
		}
	}
	if passed != 0 || failures != 0 {
		h.t.Errorf("record is wrong by %d confirmed and %d failed", passed, failures)
	}
}

// advance compares the mark with the model.
func (h *history) advance() {
	n, batch, done := h.w.advance()
	var wantBatch *feeds.Batch
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

// finish lets all calls succeed: nothing is lost, and nothing remains.
func (h *history) finish() {
	h.failures = 0
	h.endDefer()
	for h.m.first() < len(h.m.all) && !h.t.Failed() {
		h.call(false, true)
		h.endDefer()
	}
	h.call(false, true)
	o := &h.w.order
	if !h.w.empty() || h.w.bytes != 0 || len(h.w.runs)+len(o.keys)+o.failed+o.beyond+o.deferring > 0 {
		h.t.Errorf("something was left behind: %d bytes, %d runs, %d keys, %d failed, %d beyond, %d leaving",
			h.w.bytes, len(h.w.runs), len(o.keys), o.failed, o.beyond, o.deferring)
	}
	if h.w.tracked == h.w.keepsOrder {
		h.t.Error("the bookkeeping goes on without need, or has ended in spite of it")
	}
}

func (h *history) String() string {
	return fmt.Sprintf("keepsOrder %v, limit %d, %d keys", h.m.keepsOrder, h.m.limit, h.keys)
}
