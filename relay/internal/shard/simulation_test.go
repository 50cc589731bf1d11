package shard

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
)

// TestSimulation drives machines through random histories, each generated from a seed: names and
// the destination fail, messages are rejected, the store fails, leases expire, and machines are
// stopped and replaced. It runs in one goroutine with its own clock, so a seed always gives the
// same history. POSTRIDER_PLANS is the number of seeds.
func TestSimulation(t *testing.T) {
	plans := 1000
	if text := os.Getenv("POSTRIDER_PLANS"); text != "" {
		plans, _ = strconv.Atoi(text)
	}
	first := 0
	if text := os.Getenv("POSTRIDER_PLAN"); text != "" {
		first, _ = strconv.Atoi(text)
		plans = 1
	}
	var total tally
	for seed := first; seed < first+plans; seed++ {
		s := newSimulation(uint64(seed))
		s.verbose = plans == 1
		s.play()
		if len(s.wrong) > 0 {
			for _, line := range s.trace {
				t.Log(line)
			}
			t.Fatalf("plan %d (%s): %v", seed, s.describe(), s.wrong)
		}
		total.add(&s.tally)
	}
	t.Logf("%d plans: %+v", plans, total)
	if plans >= 500 && (total.Held == 0 || total.Dead == 0 || total.Stops == 0 || total.Probes == 0 || total.Outages == 0 ||
		total.Excluded == 0 || total.Bare == 0) {
		t.Errorf("not everything has happened: %+v", total)
	}
}

// tally counts events of histories.
type tally struct{ Messages, Sent, Held, Dead, Stops, Probes, Outages, StoreFailures, Excluded, Bare int }

func (a *tally) add(b *tally) {
	a.Messages += b.Messages
	a.Sent += b.Sent
	a.Held += b.Held
	a.Dead += b.Dead
	a.Stops += b.Stops
	a.Probes += b.Probes
	a.Outages += b.Outages
	a.StoreFailures += b.StoreFailures
	a.Excluded += b.Excluded
	a.Bare += b.Bare
}

// fate is the plan and the state of one message.
type fate struct {
	key, name string
	bad       error // the permanent error of the destination for it; nil if it is good
	times     int   // how often it was accepted
	failed    bool  // it failed at least once
	settled   bool  // it is in the confirmed prefix
	row       *row  // its deferred row; nil if none
	gone      bool  // an operator has discarded it
	excluded  bool  // an operator has handled it while it was in the log
	told      bool  // the machine knows that it is excluded
	repeated  bool  // it may be sent again
	refused   bool  // the store refuses to defer it as it is
	bare      bool  // it was deferred without its content
}

// row is a deferred message.
type row struct {
	feeds.Deferral
	seq        int
	due        time.Time
	deferredAt time.Time
}

// under is a call in flight that ends at a given time.
type under struct {
	at  time.Time
	end func()
}

// simulation is one shard, its store and its destination.
type simulation struct {
	random *rand.Rand
	cfg    Config
	now    time.Time
	m      *Machine
	tally  tally

	messages []fate
	read     int // number of messages that the machine has
	mark     int // number of settled messages
	version  uint64
	starts   map[*feeds.Batch]int // first message of each batch
	renewed  time.Time

	underway  []under
	inFlight  map[string]int // by key
	storeBusy bool

	healed          bool
	added           time.Time // when messages were last added
	destinationDown time.Time
	namesDown       map[string]time.Time
	storeDown       time.Time
	nameError       error
	stopping        bool
	stopFailed      bool // the store failed during the stop, so messages may be repeated

	verbose bool
	trace   []string
	wrong   []string
}

func idOf(number int) postrider.ID { return postrider.ID{1, byte(number), byte(number >> 8)} }

var errSim = errors.New("a failure")

func newSimulation(seed uint64) *simulation {
	r := rand.New(rand.NewPCG(seed, 11))
	pick := func(n ...int) int { return n[r.IntN(len(n))] }
	s := &simulation{
		random: r, now: time.Unix(1_000_000, 0), starts: make(map[*feeds.Batch]int), inFlight: make(map[string]int),
		namesDown: make(map[string]time.Time),
		cfg: Config{
			KeepsOrder: r.IntN(2) == 0, Strict: r.IntN(3) > 0, NameOf: func(m *postrider.Message) string { return m.Topic },
			BatchSize: pick(1, 3, 20), CallBytes: pick(1, 2000, 1<<20), Lease: 10 * time.Second, Timeout: 5 * time.Second,
			Retry: Retry{
				Outage:  retry.Policy{First: 100 * time.Millisecond, Most: 2 * time.Second},
				Message: retry.Policy{First: time.Second, Most: 10 * time.Second, Attempts: pick(1, 2, 5)},
				Random:  func() float64 { return 0.5 },
			},
		},
	}
	s.cfg.ReadAhead = s.cfg.BatchSize * pick(1, 2, 8)
	s.nameError = []error{postrider.NameUnavailable(errSim), errSim, postrider.Unavailable(errSim)}[r.IntN(3)]
	keys, names := pick(1, 3, 20), pick(1, 2, 4)
	for range pick(20, 100, 300) {
		f := fate{name: "n" + strconv.Itoa(r.IntN(names))}
		if k := r.IntN(keys + 1); k > 0 {
			f.key = "k" + strconv.Itoa(k)
		}
		switch r.IntN(60) {
		case 0:
			f.bad = postrider.Permanent(errSim)
		case 1:
			f.bad = errSim
		}
		f.refused = r.IntN(60) == 0
		s.messages = append(s.messages, f)
	}
	s.tally.Messages = len(s.messages)
	s.start()
	return s
}

func (s *simulation) describe() string {
	return fmt.Sprintf("keeps order %v, strict %v, batch %d, ahead %d, %d bytes, attempts %d, %d messages, a name that is down says %v/%v",
		s.cfg.KeepsOrder, s.cfg.Strict, s.cfg.BatchSize, s.cfg.ReadAhead, s.cfg.CallBytes, s.cfg.Retry.Message.Attempts, len(s.messages),
		postrider.ClassOf(s.nameError), postrider.ScopeOf(s.nameError))
}

func (s *simulation) note(format string, args ...any) {
	if s.verbose || len(s.trace) < 5000 {
		s.trace = append(s.trace, s.now.Format("04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (s *simulation) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.note("WRONG: %s", text)
	s.wrong = append(s.wrong, text)
}

// start creates a machine that continues where the last one ended.
func (s *simulation) start() {
	s.m, s.version = New(s.cfg, Start{}), 0
	s.read, s.stopping, s.stopFailed = s.mark, false, false
	var keys []string
	for i := range s.messages {
		if r := s.messages[i].row; r != nil && r.Blocking {
			keys = append(keys, s.messages[i].key)
		}
	}
	s.m.Blocked(keys)
	s.tell()
	s.m.Renewed(s.now)
	s.renewed = s.now
	s.note("a machine starts at %d, blocked are %v", s.mark, keys)
}

// play runs the history: first with faults, then without until everything has arrived.
func (s *simulation) play() {
	faults := s.now.Add(time.Duration(20+s.random.IntN(100)) * time.Second)
	for !s.healed || !s.done() {
		if len(s.wrong) > 0 {
			return
		}
		if s.now.After(faults) && !s.healed {
			s.healed = true
			s.destinationDown, s.storeDown = time.Time{}, time.Time{}
			clear(s.namesDown)
			s.note("nothing goes wrong any more")
		}
		if s.now.After(faults.Add(2 * time.Hour)) {
			s.complain("%s", s.missing())
			return
		}
		s.step()
	}
}

func (s *simulation) done() bool {
	for i := range s.messages {
		if f := &s.messages[i]; f.times == 0 && !f.gone {
			return false
		}
	}
	return true
}

func (s *simulation) missing() string {
	var all []int
	for i := range s.messages {
		if f := &s.messages[i]; f.times == 0 && !f.gone {
			all = append(all, i)
		}
	}
	return fmt.Sprintf("%d messages have not arrived: %v; %+v", len(all), all, s.m.Standing())
}

// step advances to the next event.
func (s *simulation) step() {
	s.disturb()
	s.feed()
	a := s.m.Next(s.now)
	s.do(&a)
	s.follow()
	if a.Ended {
		s.tally.Stops++
		if !s.stopping || len(s.underway) > 0 {
			s.complain("the machine has ended with %d calls under way", len(s.underway))
		}
		for i := s.mark; i < s.read && s.stopFailed && s.m.repeats(); i++ {
			s.messages[i].repeated = true // the store failed until the deadline of the stop
		}
		s.start()
		return
	}
	next := s.now.Add(500 * time.Millisecond)
	if !a.Wake.IsZero() && a.Wake.Before(next) {
		next = a.Wake
	}
	slices.SortStableFunc(s.underway, func(a, b under) int { return a.at.Compare(b.at) })
	if len(s.underway) > 0 && !s.underway[0].at.After(next) {
		u := s.underway[0]
		s.underway = s.underway[1:]
		if u.at.After(s.now) {
			s.now = u.at
		}
		u.end()
		return
	}
	s.now = next
}

// disturb injects random faults.
func (s *simulation) disturb() {
	if s.healed {
		s.operate()
		s.tell()
		if s.now.Sub(s.added) > 10*time.Second { // without other messages, a message that always fails looks like an outage
			s.added = s.now
			for n := range 4 {
				s.messages = append(s.messages, fate{name: "n" + strconv.Itoa(n)})
			}
		}
		return
	}
	until := s.now.Add(time.Duration(s.random.IntN(20_000)) * time.Millisecond)
	switch s.random.IntN(400) {
	case 0:
		s.destinationDown = until
		s.tally.Outages++
		s.note("the destination is down until %s", until.Format("04:05.000"))
	case 1, 2:
		name := "n" + strconv.Itoa(s.random.IntN(4))
		s.namesDown[name] = until
		s.note("%s is down until %s", name, until.Format("04:05.000"))
	case 3:
		s.storeDown = until
		s.note("the store is down until %s", until.Format("04:05.000"))
	case 4, 5:
		if !s.stopping {
			s.stopping, s.stopFailed = true, s.now.Before(s.storeDown)
			s.m.Stop(s.now.Add(time.Minute))
			s.note("stop")
		}
	case 6:
		s.operate()
	case 7, 8, 9:
		s.exclude()
	}
	if s.random.IntN(10) == 0 {
		s.tell()
	}
}

// exclude makes an operator discard a message that is still in the log.
func (s *simulation) exclude() {
	number := s.mark + s.random.IntN(2*s.cfg.ReadAhead)
	if number >= len(s.messages) {
		return
	}
	if f := &s.messages[number]; f.times == 0 && f.row == nil {
		s.note("message %d (%s, %s) is excluded", number, f.key, f.name)
		f.gone, f.excluded = true, true
		s.tally.Excluded++
	}
}

// tell passes the excluded messages to the machine.
func (s *simulation) tell() {
	var ids []postrider.ID
	for i := range s.messages {
		if f := &s.messages[i]; f.excluded && !f.settled {
			ids = append(ids, idOf(i))
			f.told = true
		}
	}
	s.m.Exclude(ids)
}

// operate discards bad dead letters and retries the others.
func (s *simulation) operate() {
	for i := range s.messages {
		f := &s.messages[i]
		if f.row == nil || f.row.Status != feeds.StatusDead {
			continue
		}
		// It may have met two outages of its name that were not recognised, because others
		// succeeded in between.
		if f.bad == nil && !f.bare {
			if s.cfg.Retry.Message.Attempts >= 5 && postrider.ScopeOf(s.nameError) != postrider.ScopeUnknown {
				s.complain("message %d is good, and dead: %s", i, f.row.Cause)
			}
			f.row.Status, f.row.Attempts, f.row.due = feeds.StatusRetry, 0, s.now
			continue
		}
		s.note("message %d is discarded", i)
		f.gone = true
		s.remove(i)
	}
}

// feed passes events to the machine: messages of the log, lease renewals, deferred messages.
func (s *simulation) feed() {
	if s.random.IntN(4) > 0 && !s.now.Before(s.storeDown) {
		s.m.Renewed(s.now)
		s.renewed = s.now
	}
	room := s.cfg.ReadAhead - s.m.Standing().Buffered
	s.m.Full(room <= 0)
	if s.stopping {
		return
	}
	if n := min(room, len(s.messages)-s.read); n > 0 && s.random.IntN(2) == 0 {
		n = 1 + s.random.IntN(n)
		b := new(feeds.Batch)
		for i := s.read; i < s.read+n; i++ {
			f := &s.messages[i]
			b.Messages = append(b.Messages, postrider.Message{ID: idOf(i), Type: strconv.Itoa(i), Key: f.key, Topic: f.name, Payload: make([]byte, s.random.IntN(1000))})
		}
		s.starts[b] = s.read
		s.read += n
		s.m.Read(b, Size(b))
	}
	if s.now.Before(s.storeDown) {
		return
	}
	if held, ok := s.m.WantsDue(s.now); ok {
		if due := s.due(held); len(due) > 0 {
			s.m.Due(due, s.now)
		}
	}
}

// do starts the actions of the machine.
func (s *simulation) do(a *Actions) {
	if a.Publish != nil {
		s.publish(a.Publish, s.m.Published, false)
	}
	if a.Retry != nil {
		s.publish(a.Retry, s.m.Retried, true)
	}
	if len(a.Defer) > 0 && len(a.Conclude) > 0 || s.storeBusy && len(a.Defer)+len(a.Conclude) > 0 {
		s.complain("two calls of the store at once")
	}
	if len(a.Defer) > 0 {
		s.call(func(err error) {
			for _, d := range a.Defer {
				if s.messages[s.starts[d.Batch]+d.Index].refused && !d.Bare {
					err = errSim
					s.stopFailed = s.stopFailed || s.stopping
				}
			}
			if err == nil {
				s.deferAll(a.Defer)
			}
			s.m.Deferred(err, s.now)
		})
	}
	if len(a.Conclude) > 0 {
		done := slices.Clone(a.Conclude)
		s.call(func(err error) {
			var free []string
			if err == nil {
				free = s.conclude(done)
			}
			s.m.Concluded(free, err, s.now)
		})
	}
}

// call starts a call of the store.
func (s *simulation) call(end func(error)) {
	s.storeBusy = true
	s.later(s.random.IntN(50), func() {
		s.storeBusy = false
		var err error
		if s.now.Before(s.storeDown) || !s.healed && s.random.IntN(20) == 0 {
			err = errSim
			s.stopFailed = s.stopFailed || s.stopping
			s.tally.StoreFailures++
		}
		end(err)
	})
}

func (s *simulation) later(milliseconds int, end func()) {
	s.underway = append(s.underway, under{s.now.Add(time.Duration(milliseconds) * time.Millisecond), end})
}

// publish starts a call of the publisher, and checks what a publisher may rely on.
func (s *simulation) publish(c *Call, answered func(Answer, time.Time), retry bool) {
	if s.stopping {
		s.complain("something is sent during a stop")
	}
	if c.Deadline.After(s.renewed.Add(s.cfg.Lease * 9 / 10)) {
		s.complain("a call may last longer than the lease")
	}
	bytes := 0
	var keys []string
	for i := range c.Messages {
		bytes += sizeOf(&c.Messages[i])
		if number, _ := strconv.Atoi(c.Messages[i].Type); s.messages[number].told {
			s.complain("message %d is sent, and excluded", number)
		}
		if key := c.Messages[i].Key; key != "" {
			if s.cfg.Strict && s.inFlight[key] > 0 || !s.cfg.KeepsOrder && slices.Contains(keys, key) {
				s.complain("two messages of %s are in flight", key)
			}
			keys = append(keys, key)
		}
	}
	if len(c.Messages) > s.cfg.BatchSize || bytes > s.cfg.CallBytes && len(c.Messages) > 1 {
		s.complain("a call has %d messages with %d bytes", len(c.Messages), bytes)
	}
	for _, key := range keys {
		s.inFlight[key]++
	}
	s.later(s.random.IntN(200), func() {
		for _, key := range keys {
			delete(s.inFlight, key)
		}
		answered(Answer{Errs: s.answer(c.Messages, retry)}, s.now)
	})
}

// answer returns the destination's answer for a message.
func (s *simulation) answer(msgs []postrider.Message, retry bool) []error {
	errs := make([]error, len(msgs))
	stuck := make(map[string]bool)
	for i := range msgs {
		number, _ := strconv.Atoi(msgs[i].Type)
		f := &s.messages[number]
		s.tally.Sent++
		switch {
		case f.key != "" && stuck[f.key]:
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			continue
		case s.now.Before(s.destinationDown):
			errs[i] = postrider.Unavailable(errSim)
		case s.now.Before(s.namesDown[f.name]):
			errs[i] = s.nameError
			if retry && f.row != nil && f.row.Status == feeds.StatusHeld {
				s.tally.Probes++
			}
		case f.bad != nil:
			errs[i] = f.bad
		}
		if errs[i] != nil {
			f.failed = true
			stuck[f.key] = true
			s.note("message %d (%s, %s) fails: %v/%v, deferred: %v", number, f.key, f.name, postrider.ClassOf(errs[i]), postrider.ScopeOf(errs[i]), retry)
			continue
		}
		s.accept(number)
	}
	return errs
}

// accept records that a message has arrived.
func (s *simulation) accept(number int) {
	f := &s.messages[number]
	s.note("message %d (%s, %s) arrives", number, f.key, f.name)
	if f.times++; f.times > 1 && !f.repeated {
		s.complain("message %d was sent again", number)
	}
	if f.key == "" {
		return
	}
	for i := range number {
		e := &s.messages[i]
		if e.key == f.key && e.times == 0 && !e.gone && !e.bare && (s.cfg.Strict || !e.failed) {
			s.complain("message %d has arrived before message %d of %s", number, i, f.key)
		}
	}
}

// follow checks that every message of the confirmed prefix was accepted or deferred.
func (s *simulation) follow() {
	mark := s.m.Mark()
	if mark.Version == s.version {
		return
	}
	s.version = mark.Version
	end := s.starts[mark.Batch] + mark.Done
	for i := s.mark; i < end; i++ {
		f := &s.messages[i]
		if f.settled = true; f.times == 0 && f.row == nil && !f.gone {
			s.complain("message %d is settled, and lost", i)
		}
	}
	if end < s.mark {
		s.complain("the prefix ends at %d, after %d", end, s.mark)
	}
	s.mark = end
}

// deferAll implements the store's Defer.
func (s *simulation) deferAll(all []feeds.Deferral) {
	for _, step := range []bool{false, true} { // waiting messages after those that they wait for
		for _, d := range all {
			number := s.starts[d.Batch] + d.Index
			f := &s.messages[number]
			if (d.Status == feeds.StatusWaiting) != step || f.row != nil || f.excluded {
				continue
			}
			r := &row{Deferral: d, seq: number, due: s.now.Add(d.Delay), deferredAt: s.now}
			if d.Status == feeds.StatusWaiting && s.head(f.key) == nil {
				r.Status, r.due = feeds.StatusRetry, s.now
			}
			if r.Status == feeds.StatusHeld {
				s.tally.Held++
			}
			if r.Status == feeds.StatusDead {
				s.tally.Dead++
			}
			f.row = r
			if d.Bare {
				if f.bare = true; !f.refused || d.Blocking || d.Status != feeds.StatusDead {
					s.complain("message %d has lost its content: %+v", number, d)
				}
				s.tally.Bare++
			}
			s.note("message %d (%s, %s) is deferred, %s, %d attempts", number, f.key, f.name, r.Status, r.Attempts)
		}
	}
}

// head returns the first row that blocks a key.
func (s *simulation) head(key string) *row {
	if key == "" {
		return nil
	}
	for i := range s.messages {
		if r := s.messages[i].row; r != nil && r.Blocking && s.messages[i].key == key {
			return r
		}
	}
	return nil
}

// due implements the store's Due.
func (s *simulation) due(held []feeds.HeldName) (all []feeds.Deferred) {
	for i := range s.messages {
		f := &s.messages[i]
		r := f.row
		if r == nil || len(all) >= s.cfg.BatchSize || r.Blocking && s.head(f.key) != r {
			continue
		}
		switch r.Status {
		case feeds.StatusRetry:
			if r.due.After(s.now) {
				continue
			}
		case feeds.StatusHeld:
			if at := slices.IndexFunc(held, func(h feeds.HeldName) bool { return h.Name == r.Name }); at >= 0 {
				if !held[at].Probe || s.probe(held[at]) != r {
					continue
				}
			}
		default:
			continue
		}
		all = append(all, s.deferred(r))
		if !r.Blocking || r.Status == feeds.StatusHeld && slices.ContainsFunc(held, func(h feeds.HeldName) bool { return h.Name == r.Name }) {
			continue
		}
		for j := i + 1; j < len(s.messages); j++ {
			if w := s.messages[j].row; w != nil && w.Blocking && s.messages[j].key == f.key {
				if w.Status != feeds.StatusWaiting {
					break
				}
				all = append(all, s.deferred(w))
			}
		}
	}
	return all
}

// probe returns the first row of a held name behind a position, or else the first of all.
func (s *simulation) probe(h feeds.HeldName) (first *row) {
	for i := range s.messages {
		r := s.messages[i].row
		if r == nil || r.Status != feeds.StatusHeld || r.Name != h.Name || r.Blocking && s.head(s.messages[i].key) != r {
			continue
		}
		if int64(i) > h.After {
			return r
		}
		if first == nil {
			first = r
		}
	}
	return first
}

func (s *simulation) deferred(r *row) feeds.Deferred {
	f := &s.messages[r.seq]
	return feeds.Deferred{
		Message: postrider.Message{ID: idOf(r.seq), Type: strconv.Itoa(r.seq), Key: f.key, Topic: f.name}, Seq: int64(r.seq), Status: r.Status, Name: r.Name,
		Blocking: r.Blocking, Attempts: r.Attempts, DeferredAt: r.deferredAt, LastError: r.Cause,
	}
}

// conclude implements the store's Conclude.
func (s *simulation) conclude(done []feeds.Conclusion) (free []string) {
	var keys []string
	for _, c := range done {
		f := &s.messages[c.Seq]
		r := f.row
		if r == nil || r.Status == feeds.StatusDead {
			continue
		}
		if c.Delivered {
			if f.row = nil; r.Blocking {
				keys = append(keys, f.key)
			}
			continue
		}
		s.note("message %d is concluded: %s, %d attempts, overtaken: %v", c.Seq, c.Status, c.Attempts, c.Overtaken)
		if c.Status == feeds.StatusDead {
			s.tally.Dead++
		}
		r.Status, r.Name, r.Attempts, r.Cause, r.due = c.Status, c.Name, c.Attempts, c.Cause, s.now.Add(c.Delay)
		if c.Overtaken && r.Blocking {
			r.Blocking = false
			keys = append(keys, f.key)
		}
	}
	for _, key := range keys {
		if s.promote(key) {
			free = append(free, key)
		}
	}
	return free
}

// remove removes a row, like an operator.
func (s *simulation) remove(number int) {
	f := &s.messages[number]
	r := f.row
	if f.row = nil; r.Blocking {
		s.promote(f.key)
	}
}

// promote makes the first row of a key due. It reports whether there is none.
func (s *simulation) promote(key string) bool {
	head := s.head(key)
	if head != nil && head.Status == feeds.StatusWaiting {
		head.Status, head.Attempts, head.due = feeds.StatusRetry, 0, s.now
	}
	return head == nil
}
