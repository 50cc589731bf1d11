package redis

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// serverTimeout limits calls that are made even after the consumer's context has ended.
const serverTimeout = 2 * time.Second

// held tracks entries from receipt until the server has confirmed their acknowledgement. Meanwhile
// it resets their idle time periodically, so that no other member claims them.
type held struct {
	cfg    *Config
	client redis.UniversalClient

	mu      sync.Mutex
	entries map[string]bool
	unacked map[string]bool // with Ordered: done, but the acknowledgement is not confirmed
	ended   chan struct{}
	run     sync.WaitGroup
}

func newHeld(cfg *Config, options *redis.UniversalOptions) *held {
	h := &held{cfg: cfg, client: redis.NewUniversalClient(options), entries: make(map[string]bool), unacked: make(map[string]bool)}
	h.ended = make(chan struct{})
	h.run.Go(h.keep)
	return h
}

// take records an entry and returns false if it is held already.
func (h *held) take(id string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	again := h.entries[id]
	h.entries[id] = true
	return !again
}

// done acknowledges an entry and only then forgets it: until then the server could deliver it
// again. If the acknowledgement fails, the entry is redelivered later. With Ordered, where idle
// entries are not claimed, acknowledge retries it instead.
func (h *held) done(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
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

// acknowledge retries failed acknowledgements.
func (h *held) acknowledge() {
	h.mu.Lock()
	ids := slices.Collect(maps.Keys(h.unacked))
	h.mu.Unlock()
	if len(ids) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
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

// keep resets the entries' idle time until the end. With Ordered there is no idle time to reset,
// and a process whose lease is over must not claim entries again.
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

// setIdle sets the idle time of the entries on the server.
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
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	_ = h.client.Do(ctx, append(args, "idle", idle.Milliseconds(), "justid")...).Err() // the next beat retries
}

// leaving removes a member that has no pending entries. Check and removal are atomic, because
// removing a member discards its pending entries.
var leaving = redis.NewScript(`
if #redis.call('XPENDING', KEYS[1], ARGV[1], '-', '+', 1, ARGV[2]) > 0 then return 0 end
return redis.call('XGROUP', 'DELCONSUMER', KEYS[1], ARGV[1], ARGV[2])`)

// leave makes unfinished entries available to other members and leaves the group. Both are
// optional, so that an unresponsive server delays it only briefly.
func (h *held) leave() {
	close(h.ended)
	h.run.Wait()
	if h.cfg.Ordered {
		h.acknowledge()
	} else {
		h.setIdle(h.cfg.ClaimIdle)
	}
	ctx, cancel := context.WithTimeout(context.Background(), serverTimeout)
	defer cancel()
	_ = leaving.Run(ctx, h.client, []string{h.cfg.Name}, h.cfg.Group, h.cfg.Member).Err()
	_ = h.client.Close()
}
