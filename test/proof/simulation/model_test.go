package simulation_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// model is the expected state, as simple as possible: what was committed, and what was received.
type model struct {
	mu        sync.Mutex
	start     time.Time
	strict    bool
	once      bool             // the broker can report what has arrived
	noted     map[string]bool  // names of which a relay has said that messages may come twice
	committed map[string]*fate // by payload, which is unique
	byKey     map[string][]string
	rolled    map[string]bool
	inFlight  map[string]string // by process and key: what is being sent
	faults    []time.Time       // that can cause duplicates
	repeats   []repeat
	sending   map[string][]sending // by order
	voided    time.Time            // when leases were last voided
	trace     []string
	wrong     []string
}

// fate is the state of a message.
type fate struct {
	draft
	key       string
	due       time.Time
	begun     time.Time // when it was first handed to a publisher
	times     int       // number of receipts
	failures  int       // failed calls for it
	tried     int
	abandoned bool // an operator has removed it from the order
	rewound   bool // an operator has had it sent again
}

// repeat is a message that was received again.
type repeat struct {
	payload   string
	begun, at time.Time
}

func newModel(strict, once bool) *model {
	return &model{
		start:     time.Now(),
		strict:    strict,
		once:      once,
		noted:     make(map[string]bool),
		committed: make(map[string]*fate),
		byKey:     make(map[string][]string),
		rolled:    make(map[string]bool),
		inFlight:  make(map[string]string),
		sending:   make(map[string][]sending),
	}
}

// note adds to the trace. The caller holds the lock.
func (m *model) note(format string, args ...any) {
	if len(m.trace) < 20_000 {
		m.trace = append(m.trace, fmt.Sprintf("%12v  ", time.Since(m.start))+fmt.Sprintf(format, args...))
	}
}

var mayComeTwice = regexp.MustCompile(`some may come twice.* name=(\S+)`)

// Write records the relays' log.
func (m *model) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("%s", strings.TrimSpace(string(line)))
	if found := mayComeTwice.FindSubmatch(line); found != nil {
		m.noted[string(found[1])] = true
	}
	return len(line), nil
}

// complain records a violation. The caller holds the lock.
func (m *model) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.note("WRONG: %s", text)
	m.wrong = append(m.wrong, text)
}

// fault records something that can cause duplicates.
func (m *model) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, time.Now())
	m.note(format, args...)
}

// commit records what a transaction has written, in order. No other transaction may commit
// concurrently.
func (m *model) commit(payload, key string, l draft, due time.Time, rollback bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rollback {
		m.rolled[payload] = true
		return
	}
	m.note("committed %s, key %q, %s", payload, key, l.Kind)
	m.committed[payload] = &fate{draft: l, key: key, due: due}
	m.byKey[key] = append(m.byKey[key], payload)
}

func (m *model) kindOf(msg *postrider.Message) kind {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.committed[string(msg.Payload)]; f != nil {
		return f.Kind
	}
	return good
}

// attempts counts the calls for a message.
func (m *model) attempts(msg *postrider.Message) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.committed[string(msg.Payload)]
	if f == nil {
		return 0
	}
	f.tried++
	return f.tried
}

func (m *model) failed(msg *postrider.Message, arrived bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if f := m.committed[string(msg.Payload)]; f != nil {
		f.failures++
	}
	if arrived {
		m.faults = append(m.faults, time.Now())
	}
	m.note("failed %s: %v %v, arrived: %v", msg.Payload, postrider.ClassOf(err), err, arrived)
}

// unanswered records a call that has failed for all of its messages.
func (m *model) unanswered(msgs []postrider.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		if f := m.committed[string(msgs[i].Payload)]; f != nil {
			f.failures++
		}
	}
}

// unasked records that a relay could not find out what has arrived. That counts as a failure of
// messages that it then does not send.
func (m *model) unasked() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.committed {
		if f.times == 0 {
			f.failures++
		}
	}
}

// receive records a message that the broker has accepted.
func (m *model) receive(msg *postrider.Message, by string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now, payload := time.Now(), string(msg.Payload)
	f := m.committed[payload]
	switch {
	case f == nil:
		m.complain("phantom: %s was received and never committed (rolled back: %v)", payload, m.rolled[payload])
		return
	case msg.Key != f.key || msg.Headers["payload"] != payload:
		m.complain("%s has arrived with key %q and headers %v", payload, msg.Key, msg.Headers)
	case now.Before(f.due):
		m.complain("%s has arrived %v before its time", payload, f.due.Sub(now))
	}
	f.times++
	m.note("received %s, %s, key %q, the %d. time, from %s", payload, msg.ID, f.key, f.times, by)
	if f.times == 1 {
		m.inOrder(payload, f)
		return
	}
	if m.once && !f.rewound && !m.noted[msg.Topic] {
		m.complain("%s came twice, although the broker can report what has arrived", payload)
	}
	if !f.rewound {
		m.repeats = append(m.repeats, repeat{payload, f.begun, now})
	}
}

// explainRepeats reports messages that were received again without a fault. A call without a
// response is known as a fault only at its end, and has its effect before: longest is how long that
// may take. A call that defers a message, without a response, may have its effect before the
// message is sent from both places.
func (m *model) explainRepeats(longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.repeats {
		from, until := r.begun.Add(-longest), r.at.Add(longest)
		if !slices.ContainsFunc(m.faults, func(at time.Time) bool { return !at.Before(from) && !at.After(until) }) {
			m.complain("%s was received again, %v after its first call, and nothing has gone wrong", r.payload, r.at.Sub(r.begun))
		}
	}
}

// inOrder reports earlier messages of the key that should have been received before. The caller
// holds the lock.
func (m *model) inOrder(payload string, f *fate) {
	if f.key == "" || !f.due.IsZero() || f.abandoned {
		return
	}
	for _, earlier := range m.byKey[f.key] {
		e := m.committed[earlier]
		switch {
		case earlier == payload:
			return
		case e.times > 0 || !e.due.IsZero() || e.abandoned:
		case !m.strict && e.failures > 0: // it may be overtaken
		default:
			m.complain("key %s: %s was received before %s", f.key, payload, earlier)
			return
		}
	}
}

// begin and end check the guarantees for a publisher that does not keep order. From the first call
// for a message on, a fault may leave it in two places: in flight or deferred, and in an unsettled
// part of the log.
func (m *model) begin(process string, msgs []postrider.Message, keepsOrder bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		if f := m.committed[string(msgs[i].Payload)]; f != nil && f.begun.IsZero() {
			f.begun = time.Now()
		}
	}
	if keepsOrder || !m.strict { // if it may be overtaken, a rejected message can arrive at any time
		return
	}
	for i := range msgs {
		if msgs[i].Key == "" || !msgs[i].DeliverAfter.IsZero() {
			continue
		}
		place := process + " " + msgs[i].Key
		if other := m.inFlight[place]; other != "" {
			m.complain("%s sends %s and %s of one key at once", process, other, msgs[i].Payload)
		}
		m.inFlight[place] = string(msgs[i].Payload)
	}
}

func (m *model) end(process string, msgs []postrider.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		delete(m.inFlight, process+" "+msgs[i].Key)
	}
}

// sending is a message that a process is sending.
type sending struct {
	by    *process
	since time.Time
}

// order returns the unit that no two relays may send concurrently: a key, or a message without one.
func order(msg *postrider.Message) string {
	if msg.Key != "" {
		return msg.Key
	}
	return "message " + string(msg.Payload)
}

// enter records that a process begins to send, and reports another process that sends although it
// has lost its shard. A suspended process cannot know that, and after an event that voids leases no
// process can for the length of a lease.
func (m *model) enter(p *process, msgs []postrider.Message, lease time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for i := range msgs {
		key := order(&msgs[i])
		for _, other := range m.sending[key] {
			if other.by != p && !other.by.isDead() && !other.by.stoodStillSince(other.since) && other.since.Sub(m.voided) > lease {
				m.complain("%s sends %s of %s, which %s is sending since %v", p.name, msgs[i].Payload, key, other.by.name, now.Sub(other.since))
			}
		}
		m.sending[key] = append(m.sending[key], sending{p, now})
	}
}

func (m *model) leave(p *process, msgs []postrider.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		key := order(&msgs[i])
		if at := slices.IndexFunc(m.sending[key], func(s sending) bool { return s.by == p }); at >= 0 {
			m.sending[key] = slices.Delete(m.sending[key], at, at+1)
		}
	}
}

// void records that all leases are void.
func (m *model) void() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.voided = time.Now()
}

// abandon records that an operator has removed a message from the order.
func (m *model) abandon(payload string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("an operator gives up %s", payload)
	m.committed[payload].abandoned = true
}

// rewind records that an operator has all messages sent again. Deferred messages may then be sent
// twice.
func (m *model) rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("an operator rewinds the feed")
	for _, f := range m.committed {
		f.rewound = true
	}
}

// missing returns the messages that have not arrived and were not abandoned.
func (m *model) missing() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var payloads []string
	for _, payload := range slices.Sorted(maps.Keys(m.committed)) {
		if f := m.committed[payload]; f.times == 0 && !f.abandoned {
			payloads = append(payloads, payload)
		}
	}
	return payloads
}

// problems returns all violations.
func (m *model) problems() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.wrong, "\n")
}

// counts returns how many messages were committed and received, including duplicates.
func (m *model) counts() (committed, received, faults int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.committed {
		received += f.times
	}
	return len(m.committed), received, len(m.faults)
}

func isStrict(c relay.Config) bool { return c.Order == relay.Strict }
