package redis

import (
	"context"
	"crypto/rand"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker/internal/lease"
)

var _ lease.Store = (*leases)(nil)

// leases stores the lease of a group in a key next to its stream, with the owner as its value. The
// server expires a lease that is not renewed.
type leases struct {
	client redis.UniversalClient
	key    string
	owner  string
	length time.Duration
}

// leaseKey starts with the stream's name, so that one key pattern can permit both. In a cluster it
// is in the stream's slot, so that scripts may use both keys.
func (c *Config) leaseKey() string {
	name := c.Name
	if c.Cluster && !hasTag(name) {
		name = "{" + name + "}"
	}
	return name + ":" + c.Group + ":lease"
}

// hasTag reports whether only a part of a key, in braces, determines its slot.
func hasTag(key string) bool {
	_, rest, ok := strings.Cut(key, "{")
	return ok && strings.Index(rest, "}") > 0
}

// leases returns the lease of the group with a unique owner, which differs for each call.
func (c *Consumer) leases() *leases {
	options := *c.options // its own client: a renewal must not wait behind messages
	options.PoolSize = 2
	return &leases{
		client: redis.NewUniversalClient(&options), key: c.cfg.leaseKey(), owner: c.cfg.Member + "/" + rand.Text()[:8], length: c.cfg.Lease,
	}
}

// Each script compares and acts atomically. A lost answer does no harm: an owner can take its lease
// again.
var (
	taking = redis.NewScript(`
local owner = redis.call('GET', KEYS[1])
if owner and owner ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)
	renewing = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])`)
	releasing = redis.NewScript(`
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])`)
)

func (l *leases) run(ctx context.Context, s *redis.Script) (bool, error) {
	n, err := s.Run(ctx, l.client, []string{l.key}, l.owner, l.length.Milliseconds()).Int()
	return n > 0, err
}

// Look implements [lease.Store].
func (l *leases) Look(ctx context.Context) (lease.Sight, error) {
	owner, err := l.client.Get(ctx, l.key).Result()
	if errors.Is(err, redis.Nil) {
		return lease.Sight{Free: true}, nil
	}
	return lease.Sight{Free: owner == l.owner}, err
}

// Take implements [lease.Store].
func (l *leases) Take(ctx context.Context) (bool, error) { return l.run(ctx, taking) }

// Renew implements [lease.Store].
func (l *leases) Renew(ctx context.Context) (bool, error) { return l.run(ctx, renewing) }

// Release implements [lease.Store].
func (l *leases) Release(ctx context.Context) error {
	_, err := l.run(ctx, releasing)
	return err
}
