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
	"github.com/postrider/postrider/desk"
)

var (
	_ postrider.Store      = (*Store)(nil)
	_ postrider.Maintainer = (*Store)(nil)

	errRemoved = errors.New("memory: feed was removed")
)

// Config holds the settings of a [Store].
type Config struct {
	// Shards is the number of shards, and so the largest number of relays that share the work of one feed. Defaults
	// to 8.
	Shards int
	// DedupWindow is for how long a dedup key stays unique. Defaults to 7 days.
	DedupWindow time.Duration
	// InboxWindow is for how long consumers remember which messages they have received. Defaults to 7 days.
	InboxWindow time.Duration
}

// Store keeps messages in memory. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex // guards everything below, and the transactions and feeds of this store
	shards  []shard
	ledgers map[string]*ledger // by name of the feed
	opened  int                // how many feeds were opened: the ID of the latest
	written int64              // how many messages were committed: the seq of the latest
	window  time.Duration
	keys    map[string]claim // dedup keys
	records []desk.Entry
	inboxes map[string]*received // by consumer
	memory  time.Duration        // of the inboxes
}

// entry is a message of the log.
type entry struct {
	postrider.Message
	seq int64 // its place in the order of commits, over all shards
	at  time.Time
}

// shard is a log. The position of a message in it never changes: it is base + its index.
type shard struct {
	base    int
	entries []entry
}

func (s *shard) end() int { return s.base + len(s.entries) }

func (s *shard) at(position int) *entry { return &s.entries[position-s.base] }

// ledger is the state of one named feed: how far it has come, who serves it, and what it has set aside.
type ledger struct {
	created, settled time.Time
	paused           bool
	leases           []lease             // by shard
	members          map[*feed]time.Time // until when each counts
	aside            aside
}

type lease struct {
	holder  *feed // nil when released
	until   time.Time
	at      time.Time       // when it was last taken, settled or renewed
	settled int             // position of the first message that is not settled
	crashes int             // holders in a row that let the lease run out, without any progress
	started map[int64]start // by seq: suspects that were begun
}

// New returns an empty store.
func New(config Config) *Store {
	if config.Shards <= 0 {
		config.Shards = 8
	}
	if config.DedupWindow <= 0 {
		config.DedupWindow = 7 * 24 * time.Hour
	}
	if config.InboxWindow <= 0 {
		config.InboxWindow = 7 * 24 * time.Hour
	}
	return &Store{
		shards:  make([]shard, config.Shards),
		ledgers: make(map[string]*ledger),
		window:  config.DedupWindow,
		keys:    make(map[string]claim),
		inboxes: make(map[string]*received),
		memory:  config.InboxWindow,
	}
}

// Open implements [postrider.Store]. The member's lease must be positive.
func (s *Store) Open(ctx context.Context, name string, member postrider.Member) (postrider.Feed, error) {
	if member.Lease <= 0 {
		return nil, fmt.Errorf("memory: a lease of %v would never be held", member.Lease)
	}
	var f *feed
	err := s.locked(ctx, func(now time.Time) error {
		if s.ledgers[name] == nil {
			s.ledgers[name] = s.newLedger(now, true)
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
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// newLedger begins with the oldest message or behind the newest. The caller holds the lock.
func (s *Store) newLedger(now time.Time, oldest bool) *ledger {
	l := &ledger{created: now, leases: make([]lease, len(s.shards)), members: make(map[*feed]time.Time)}
	for i := range l.leases {
		l.leases[i].settled = s.shards[i].end()
		if oldest {
			l.leases[i].settled = s.shards[i].base
		}
	}
	return l
}

// Maintain drops the messages that every feed has settled, and dedup keys that are out of their window. Without a feed
// it drops no message.
func (s *Store) Maintain(ctx context.Context) error {
	return s.locked(ctx, func(now time.Time) error {
		maps.DeleteFunc(s.keys, func(_ string, c claim) bool { return now.Sub(c.at) >= s.window })
		if len(s.ledgers) == 0 {
			return nil
		}
		for i := range s.shards {
			sh := &s.shards[i]
			passed := sh.end()
			for _, l := range s.ledgers {
				passed = min(passed, l.leases[i].settled)
			}
			sh.entries = slices.Delete(sh.entries, 0, passed-sh.base)
			sh.base = passed
		}
		return nil
	})
}

func (s *Store) locked(ctx context.Context, do func(now time.Time) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return do(time.Now())
}

// add makes messages visible to the feeds. The caller holds the lock.
func (s *Store) add(entries []entry) {
	for _, e := range entries {
		s.written++
		e.seq = s.written
		sh := &s.shards[s.shardOf(&e.Message)]
		sh.entries = append(sh.entries, e)
	}
}

// shardOf spreads messages that are in no order by their ID, lest they all end up in one shard.
func (s *Store) shardOf(m *postrider.Message) int {
	h := fnv.New32a()
	if key := m.OrderKey(); key != "" {
		h.Write([]byte(key))
	} else {
		h.Write(m.ID[:])
	}
	return int(h.Sum32() % uint32(len(s.shards)))
}
