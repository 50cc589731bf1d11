package simulation_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
)

// model is what must be true, told as simply as possible: what was committed, and what has been received.
type model struct {
	mu        sync.Mutex
	start     time.Time
	strict    bool
	committed map[string]*fate // by payload, which is unique
	byKey     map[string][]string
	rolled    map[string]bool
	inFlight  map[string]string // by process and key: what is being sent
	faults    []time.Time       // of all that can make a message be sent twice
	repeats   []repeat
	sending   map[string][]sending // by order
	voided    time.Time            // when leases were last voided
	trace     []string
	wrong     []string
}

// fate is what has become of a message.
type fate struct {
	letter
	key       string
	due       time.Time
	begun     time.Time // when it was first handed to a publisher
	times     int       // how often it was received
	failures  int       // calls for it that failed
	tried     int
	abandoned bool // an operator has taken it out of the order
	rewound   bool // an operator has had it sent again
}

// repeat is a message that was received again.
type repeat struct {
	payload   string
	begun, at time.Time
}

func newModel(strict bool) *model {
	return &model{
		start:     time.Now(),
		strict:    strict,
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

// Write takes in what relays log.
func (m *model) Write(line []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("%s", strings.TrimSpace(string(line)))
	return len(line), nil
}

// complain notes what must not be. The caller holds the lock.
func (m *model) complain(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	m.note("WRONG: %s", text)
	m.wrong = append(m.wrong, text)
}

// fault notes something that can make messages be sent twice.
func (m *model) fault(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults = append(m.faults, time.Now())
	m.note(format, args...)
}

// commit notes what a transaction has written, in its order. The caller does so while nobody else commits.
func (m *model) commit(payload, key string, l letter, due time.Time, rollback bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if rollback {
		m.rolled[payload] = true
		return
	}
	m.note("committed %s, key %q, %s", payload, key, l.Kind)
	m.committed[payload] = &fate{letter: l, key: key, due: due}
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

// unanswered notes a call that has failed for all of its messages.
func (m *model) unanswered(msgs []postrider.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		if f := m.committed[string(msgs[i].Payload)]; f != nil {
			f.failures++
		}
	}
}

// receive notes a message that the broker has accepted.
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
	m.note("received %s, key %q, the %d. time, from %s", payload, f.key, f.times, by)
	if f.times == 1 {
		m.inOrder(payload, f)
		return
	}
	if !f.rewound {
		m.repeats = append(m.repeats, repeat{payload, f.begun, now})
	}
}

// explainRepeats looks for messages that were received again although nothing had gone wrong. A call that gets no answer is only
// known as a fault at its end, and does its harm before: longest is how long that may take. And one that defers a message, and
// gets no answer, may do its harm before the message is sent, from both places.
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

// inOrder looks for earlier messages of the key that should have been received before. The caller holds the lock.
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

// begin and end check what a publisher that does not keep order may rely on. From its first call on, a fault may leave a message
// in two places: under way or deferred, and in a part of the log that is not settled.
func (m *model) begin(process string, msgs []postrider.Message, keepsOrder bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range msgs {
		if f := m.committed[string(msgs[i].Payload)]; f != nil && f.begun.IsZero() {
			f.begun = time.Now()
		}
	}
	if keepsOrder || !m.strict { // where one that was refused is overtaken, it comes at any time
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

// sending is a message on its way from a process.
type sending struct {
	by    *process
	since time.Time
}

// order returns what no two relays may send at once: a key, or a message that has none.
func order(msg *postrider.Message) string {
	if msg.Key != "" {
		return msg.Key
	}
	return "message " + string(msg.Payload)
}

// enter notes that a process begins to send, and looks for another that does, though it has lost its shard. One that stands still
// cannot know, and after something that voids leases none does for the length of one.
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

// void notes that no lease counts any more.
func (m *model) void() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.voided = time.Now()
}

// abandon notes that an operator has taken a message out of the order.
func (m *model) abandon(payload string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("an operator gives up %s", payload)
	m.committed[payload].abandoned = true
}

// rewind notes that an operator has all messages sent again. What is deferred may then be sent twice.
func (m *model) rewind() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note("an operator rewinds the feed")
	for _, f := range m.committed {
		f.rewound = true
	}
}

// missing returns the messages that have not arrived and were not given up.
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

// verdict returns everything that was wrong.
func (m *model) verdict() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return strings.Join(m.wrong, "\n")
}

// counts returns how many messages were committed and received, those received again included.
func (m *model) counts() (committed, received, faults int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, f := range m.committed {
		received += f.times
	}
	return len(m.committed), received, len(m.faults)
}

func isStrict(c relay.Config) bool { return c.Order == relay.Strict }
