package redis

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// patience is how long the server may take for what is tried even when the consumer's context has ended.
const patience = 2 * time.Second

// held are the entries between their receipt and the server's answer to their acknowledgement. While one is held, the
// server is told from time to time that it is being worked on, so that no other member takes it over.
type held struct {
	cfg    *Config
	client redis.UniversalClient

	mu      sync.Mutex
	entries map[string]bool
	unacked map[string]bool // with ordered: done, and the server has not answered the acknowledgement
	ended   chan struct{}
	run     sync.WaitGroup
}

func newHeld(cfg *Config, options *redis.UniversalOptions) *held {
	h := &held{cfg: cfg, client: redis.NewUniversalClient(options), entries: make(map[string]bool), unacked: make(map[string]bool)}
	h.ended = make(chan struct{})
	h.run.Go(h.keep)
	return h
}

// take reports false for an entry that is held already.
func (h *held) take(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.entries[id]
	h.entries[id] = true
	return !again
}

// done acknowledges an entry. Only then it is let go: before, the server would hand it out again. One that could not be
// acknowledged comes again later; with ordered, where nobody claims what is idle, it is acknowledged later.
func (h *held) done(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := h.client.XAck(ctx, h.cfg.Name, h.cfg.Group, id).Err()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil && h.cfg.Ordered {
		h.unacked[id] = true
		return
	}
	delete(h.entries, id)
}

// acknowledge tries again what could not be acknowledged.
func (h *held) acknowledge() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.unacked))
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if h.client.XAck(ctx, h.cfg.Name, h.cfg.Group, ids...).Err() != nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, id := range ids {
		delete(h.unacked, id)
		delete(h.entries, id)
	}
}

// keep keeps entries alive until the end. With ordered there is nothing to keep alive, and a process whose lease is over must not
// make entries its own again.
func (h *held) keep() {
	every := h.cfg.ClaimIdle / 3
	if h.cfg.Ordered {
		every = time.Second
	}
	beat := time.NewTicker(every)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
			if h.cfg.Ordered {
				h.acknowledge()
			} else {
				h.setIdle(0)
			}
		case <-h.ended:
			return
		}
	}
}

// setIdle tells the server how long the entries have not been heard of.
func (h *held) setIdle(idle time.Duration) {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.entries))
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	args := []any{"xclaim", h.cfg.Name, h.cfg.Group, h.cfg.Member, 0}
	for _, id := range ids {
		args = append(args, id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = h.client.Do(ctx, append(args, "idle", idle.Milliseconds(), "justid")...).Err() // the next beat tries again
}

// leaving removes a member that has nothing pending. Test and removal are one step, because removing a member forgets
// what it has pending.
var leaving = redis.NewScript(`
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])`)

// leave frees what is not done for others to take over, and signs off. None of it is needed: a server that does not
// answer does not hold us up for long.
func (h *held) leave() {
	close(h.ended)
	h.run.Wait()
	if h.cfg.Ordered {
		h.acknowledge()
	} else {
		h.setIdle(h.cfg.ClaimIdle)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_ = leaving.Run(ctx, h.client, []string{h.cfg.Name}, h.cfg.Group, h.cfg.Member).Err()
	_ = h.client.Close()
}
