package memory

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

var (
	_ postrider.Store      = (*Store)(nil)
	_ postrider.Maintainer = (*Store)(nil)
)

// Config holds the settings of a [Store].
type Config struct {
	// Shards is the number of shards, and so the largest number of relays that share the work of one feed. Defaults
	// to 8.
	Shards int
}

// Store keeps messages in memory. It is safe for concurrent use.
type Store struct {
	mu      sync.Mutex // guards everything below, and the transactions and feeds of this store
	shards  []shard
	ledgers map[string]*ledger // by name of the feed
	opened  int                // how many feeds were opened: the ID of the latest
}

// shard is a log. The position of a message in it never changes: it is base + its index.
type shard struct {
	base     int
	messages []postrider.Message
}

func (s *shard) end() int { return s.base + len(s.messages) }

// ledger is the state of one named feed: how far it has come, and who serves it.
type ledger struct {
	leases  []lease             // by shard
	members map[*feed]time.Time // until when each counts
}

type lease struct {
	holder  *feed // nil when released
	until   time.Time
	settled int // position of the first message that is not settled
}

// New returns an empty store.
func New(config Config) *Store {
	if config.Shards <= 0 {
		config.Shards = 8
	}
	return &Store{shards: make([]shard, config.Shards), ledgers: make(map[string]*ledger)}
}

// Open implements [postrider.Store]. The member's lease must be positive.
func (s *Store) Open(ctx context.Context, name string, member postrider.Member) (postrider.Feed, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if member.Lease <= 0 {
		return nil, fmt.Errorf("memory: a lease of %v would never be held", member.Lease)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ledgers[name] == nil {
		l := &ledger{leases: make([]lease, len(s.shards)), members: make(map[*feed]time.Time)}
		for i := range l.leases {
			l.leases[i].settled = s.shards[i].base
		}
		s.ledgers[name] = l
	}
	s.opened++
	return &feed{
		store:  s,
		ledger: s.ledgers[name],
		id:     s.opened,
		lease:  member.Lease,
		next:   make([]int, len(s.shards)),
	}, nil
}

// Maintain drops the messages that every feed has settled. Without a feed it drops nothing.
func (s *Store) Maintain(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ledgers) == 0 {
		return nil
	}
	for i := range s.shards {
		sh := &s.shards[i]
		passed := sh.end()
		for _, l := range s.ledgers {
			passed = min(passed, l.leases[i].settled)
		}
		sh.messages = slices.Delete(sh.messages, 0, passed-sh.base)
		sh.base = passed
	}
	return nil
}

// add makes messages visible to the feeds. The caller holds the lock.
func (s *Store) add(msgs []postrider.Message) {
	for _, m := range msgs {
		sh := &s.shards[s.shardOf(&m)]
		sh.messages = append(sh.messages, m)
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
