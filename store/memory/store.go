package memory

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/idempotency"
	"github.com/postrider/postrider/store/feeds"
)

var (
	_ feeds.Store      = (*DB)(nil)
	_ feeds.Maintainer = (*DB)(nil)

	errRemoved = errors.New("memory: feed was removed")
)

// Config configures a [DB].
type Config struct {
	// Shards is the number of shards, and so the maximum number of relays that share the work of
	// one feed. Defaults to 8.
	Shards int
	// DedupWindow is how long a dedup key stays unique. Defaults to 7 days.
	DedupWindow time.Duration
	// InboxWindow is how long consumers remember received messages. Defaults to 7 days.
	InboxWindow time.Duration
	// MaxMessages is the maximum number of messages in the store, without delivered ones that
	// Maintain has removed. Further messages are refused with an error of
	// [postrider.ClassUnavailable], so that an outage of a destination does not use up the memory
	// of the process. Defaults to 1,000,000.
	MaxMessages int
}

// DB is a store in memory. It is safe for concurrent use. [DB.Outbox], [DB.Transactor], [DB.Feeds]
// and [DB.Admin] return the DB itself.
type DB struct {
	mu      sync.Mutex // guards everything below, and the transactions and feeds of this store
	shards  []shard
	ledgers map[string]*ledger // by name of the feed
	opened  int                // number of opened feeds: the ID of the latest
	written int64              // number of committed messages: the sequence number of the latest
	window  time.Duration
	keys    map[string]claim // dedup keys
	records []admin.Entry
	inboxes map[string]*received // by consumer
	memory  time.Duration        // window of the inboxes
	most    int                  // maximum number of messages

	sagas       *Sagas
	idempotency *Idempotency
	jobs        *Reconcilers[*Tx]
}

// entry is a message of the log.
type entry struct {
	postrider.Message
	seq int64 // position in the order of commits, over all shards
	at  time.Time
}

// shard is a log. The position of a message in it never changes: it is base + its index.
type shard struct {
	base    int
	entries []entry
}

func (s *shard) end() int { return s.base + len(s.entries) }

func (s *shard) at(position int) *entry { return &s.entries[position-s.base] }

// fit returns the end of a run of messages from one position to at most another, so that its
// payloads have no more than the given bytes in total. The run has at least one message; 0 bytes
// means no limit.
func (s *shard) fit(from, to, bytes int) int {
	sum := 0
	for position := from; bytes > 0 && position < to; position++ {
		if sum += len(s.at(position).Payload); sum > bytes {
			return max(position, from+1)
		}
	}
	return to
}

// ledger is the state of one feed: its positions, leases, members and deferred messages.
type ledger struct {
	id               string
	created, settled time.Time
	destination      string
	paused           bool
	leases           []lease             // by shard
	members          map[*feed]time.Time // with the time until which each counts as alive
	deferred         deferredList
	problems         map[string]*feeds.Problem // by name
	excluded         map[int64]exclusion       // by seq
}

type lease struct {
	owner   *feed // nil when released
	until   time.Time
	at      time.Time       // when it was last taken, settled or renewed
	settled int             // position of the first message that is not settled
	sent    time.Time       // when the oldest attempt beyond settled began; zero if there is none, or none before at
	term    int64           // how often it was taken
	crashes int             // owners in a row whose lease expired without progress
	started map[int64]start // by seq: suspect messages whose start was recorded
}

// Open returns an empty store.
func Open(config Config) *DB {
	if config.Shards <= 0 {
		config.Shards = 8
	}
	if config.DedupWindow <= 0 {
		config.DedupWindow = 7 * 24 * time.Hour
	}
	if config.InboxWindow <= 0 {
		config.InboxWindow = 7 * 24 * time.Hour
	}
	if config.MaxMessages <= 0 {
		config.MaxMessages = 1_000_000
	}
	db := &DB{
		most:    config.MaxMessages,
		shards:  make([]shard, config.Shards),
		ledgers: make(map[string]*ledger),
		window:  config.DedupWindow,
		keys:    make(map[string]claim),
		inboxes: make(map[string]*received),
		memory:  config.InboxWindow,
		jobs:    NewReconcilers[*Tx](),
	}
	db.sagas = &Sagas{store: db, all: make(map[sagaKey]*keptSaga), freed: make(chan struct{})}
	db.idempotency = &Idempotency{store: db, keys: make(map[idempotency.ID]*key)}
	return db
}

// Open implements [feeds.Store]. The member's lease must be positive.
func (s *DB) Open(ctx context.Context, name string, member feeds.Member) (feeds.Feed, error) {
	if member.Lease <= 0 {
		return nil, fmt.Errorf("memory: lease is %v: want a positive duration", member.Lease)
	}
	var f *feed
	err := s.locked(ctx, func(now time.Time) error {
		if err := s.admit(name, member, now); err != nil {
			return err
		}
		s.opened++
		f = &feed{
			store:  s,
			ledger: s.ledgers[name],
			name:   name,
			shown:  member.Name,
			id:     s.opened,
			lease:  member.Lease,
			next:   make([]int, len(s.shards)),
			told:   make([]bool, len(s.shards)),
			taken:  make([]int, len(s.shards)),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// admit checks that a member may serve the feed, and creates the feed if allowed. The caller holds
// the lock.
func (s *DB) admit(name string, member feeds.Member, now time.Time) error {
	l := s.ledgers[name]
	if l == nil {
		if len(s.ledgers) > 0 && !member.Create {
			return &feeds.NoFeedError{Feed: name, Feeds: slices.Sorted(maps.Keys(s.ledgers))}
		}
		if len(s.ledgers) == 0 {
			for _, other := range member.Beside {
				if other != name {
					s.create(admin.By{Who: member.Name}, other, member.From, "", now)
				}
			}
		}
		s.create(admin.By{Who: member.Name}, name, member.From, member.Destination, now)
		return nil
	}
	if member.Destination == "" || member.Destination == l.destination {
		return nil
	}
	if l.destination != "" {
		if !member.Force {
			return &feeds.DestinationError{Feed: name, Has: l.destination, Wants: member.Destination}
		}
		e := entryOf(admin.By{Who: member.Name}, "feed destination", name, now)
		e.Before, e.After = map[string]any{"destination": l.destination}, map[string]any{"destination": member.Destination}
		s.record(e)
	}
	l.destination = member.Destination
	return nil
}

// create creates a feed and records that. The caller holds the lock.
func (s *DB) create(by admin.By, name string, from feeds.Origin, destination string, now time.Time) {
	l := &ledger{
		id: postrider.NewID().String(), created: now, destination: destination, leases: make([]lease, len(s.shards)), members: make(map[*feed]time.Time),
		problems: make(map[string]*feeds.Problem),
	}
	e := entryOf(by, "feed add", name, now)
	for i := range l.leases {
		sh := &s.shards[i]
		start := slices.IndexFunc(sh.entries, func(e entry) bool { return !from.Now && !e.at.Before(from.Time) })
		if start < 0 {
			start = len(sh.entries)
		}
		l.leases[i].settled = sh.base + start
		e.Count += len(sh.entries) - start
	}
	e.Target = map[string]any{"from": "oldest"}
	switch {
	case from.Now:
		e.Target["from"] = "now"
	case !from.Time.IsZero():
		e.Target["from"] = from.Time.Format(time.RFC3339Nano)
	}
	if destination != "" {
		e.Target["destination"] = destination
	}
	s.ledgers[name] = l
	s.record(e)
}

// Maintain drops messages that every feed has settled, except those whose content a dead letter
// needs; dedup keys that are older than the window; and problems that ended more than keepProblems
// ago. Without a feed it drops no message.
func (s *DB) Maintain(ctx context.Context) error {
	return s.locked(ctx, func(now time.Time) error {
		maps.DeleteFunc(s.keys, func(_ string, c claim) bool { return now.Sub(c.at) >= s.window })
		if len(s.ledgers) == 0 {
			return nil
		}
		for _, l := range s.ledgers {
			maps.DeleteFunc(l.problems, func(_ string, p *feeds.Problem) bool {
				return !p.Over.IsZero() && now.Sub(p.Over) > keepProblems
			})
		}
		for i := range s.shards {
			sh := &s.shards[i]
			passed := sh.end()
			for _, l := range s.ledgers {
				passed = min(passed, l.leases[i].settled, l.deferred.content(sh, i))
			}
			sh.entries = slices.Delete(sh.entries, 0, passed-sh.base)
			if cap(sh.entries) > 2*len(sh.entries)+1024 {
				sh.entries = slices.Clone(sh.entries) // free the memory of an earlier backlog
			}
			sh.base = passed
		}
		return nil
	})
}

// held returns the number of messages in the store. The caller holds the lock.
func (s *DB) held() (n int) {
	for i := range s.shards {
		n += len(s.shards[i].entries)
	}
	return n
}

func (s *DB) locked(ctx context.Context, do func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do(time.Now())
}

// add makes messages visible to the feeds. The caller holds the lock.
func (s *DB) add(entries []entry) {
	for _, e := range entries {
		s.written++
		e.seq = s.written
		sh := &s.shards[s.shardOf(&e.Message)]
		sh.entries = append(sh.entries, e)
	}
}

// shardOf returns the shard of a message. Messages without a key are distributed by ID, so that
// they do not all end up in one shard.
func (s *DB) shardOf(m *postrider.Message) int {
	h := fnv.New32a()
	if key := m.OrderKey(); key != "" {
		h.Write([]byte(key))
	} else {
		h.Write(m.ID[:])
	}
	return int(h.Sum32() % uint32(len(s.shards)))
}
