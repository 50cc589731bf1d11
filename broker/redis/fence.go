package redis

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// A fence is a key that holds the highest term under which a sender's entries in a stream were
// recalled. A transaction that adds entries watches it: the server executes nothing if the key has
// changed since the sender read it, wherever the transaction was meanwhile.

const (
	fenceLife = 7 * 24 * time.Hour // longer than any paused process or network keeps a transaction
	unfenced  = -1                 // term of a fence that the user may not access
)

// errFenced is the error of a sender whose term is lower than a fence.
var errFenced = postrider.Unavailable(fmt.Errorf("redis: %w", broker.ErrFenced))

// fencesOf returns what the keys of a sender's fences end with.
func fencesOf(sender string) string {
	sum := sha256.Sum256([]byte(sender))
	return ":" + hex.EncodeToString(sum[:12]) + ":fence"
}

// fenceKey starts with the stream's name, so that one key pattern can permit both. In a cluster it
// is in the stream's slot; it is empty if no other key can be.
func fenceKey(stream, ending string, cluster bool) string {
	switch {
	case !cluster || hasTag(stream):
		return stream + ending
	case strings.Contains(stream, "}"):
		return ""
	default:
		return "{" + stream + "}" + ending
	}
}

// watch makes the server watch the fences and reads their terms, unless it does so already.
func (l *line) watch(ctx context.Context, fences []string) error {
	if l.watches(fences) {
		return nil
	}
	var commands []byte
	again := len(l.watched) > 0
	if again {
		commands = appendCommand(commands, "UNWATCH")
	}
	err := l.run(ctx, appendWatch(commands, fences), func() error {
		if again {
			if _, err := l.reply(); err != nil {
				return err
			}
		}
		return l.readWatched(fences)
	})
	if err == nil && l.conn == nil {
		err = ctx.Err()
	}
	return postrider.Unavailable(err)
}

func (l *line) watches(fences []string) bool {
	for _, fence := range fences {
		if _, ok := l.watched[fence]; !ok {
			return false
		}
	}
	return true
}

func appendWatch(out []byte, fences []string) []byte {
	for _, fence := range fences {
		out = appendCommand(appendCommand(out, "WATCH", fence), "GET", fence)
	}
	return out
}

// readWatched reads the answers to appendWatch.
func (l *line) readWatched(fences []string) error {
	l.watched = make(map[string]int64, len(fences))
	for _, fence := range fences {
		_, watching := l.reply()
		if watching != nil && !server.IsReply(watching) {
			return watching
		}
		value, err := l.text()
		switch {
		case server.HasCode(watching, "NOPERM"), server.HasCode(err, "NOPERM"):
			l.watched[fence] = unfenced
		case watching != nil:
			return watching
		case err != nil:
			return err
		case value == "":
			l.watched[fence] = 0
		default:
			if l.watched[fence], err = strconv.ParseInt(value, 10, 64); err != nil {
				return fmt.Errorf("redis: key %s holds no term: %w", fence, err)
			}
		}
	}
	return nil
}

// raise sets a fence to a term unless it is higher.
var raise = redis.NewScript(`
local term = redis.call('GET', KEYS[1])
if term and tonumber(term) > tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1`)

// raise raises the fence of a stream, also at the replicas that must confirm entries: after a
// failover it holds as well as they do.
func (p *Publisher) raise(ctx context.Context, from broker.Sender, stream string) error {
	key := fenceKey(stream, fencesOf(from.Name), p.cfg.Cluster)
	if key == "" {
		return broker.CannotRecall("redis: the name %q has a brace that ends nothing: no other key can be in its slot", stream)
	}
	client, err := p.routes.primary(ctx, stream)
	if err != nil {
		return postrider.Unavailable(fmt.Errorf("redis: asking the cluster: %w", err))
	}
	pipe := client.Pipeline()
	raised := raise.Eval(ctx, pipe, []string{key}, from.Term, fenceLife.Milliseconds())
	copied := redis.NewIntCmd(ctx, "wait", p.cfg.WaitReplicas, p.cfg.WaitTimeout.Milliseconds())
	if p.cfg.WaitReplicas > 0 {
		_ = pipe.Process(ctx, copied)
	}
	_, err = pipe.Exec(ctx)
	switch {
	case server.HasCode(err, "NOPERM"):
		return broker.CannotRecall("redis: the user needs the permission for EVAL, GET and SET of the key %s: %w", key, err)
	case err != nil:
		p.routes.changed(ctx)
		return server.Classify(err)
	case raised.Val() == int64(0):
		return errFenced
	case copied.Val() < int64(p.cfg.WaitReplicas):
		return postrider.Unavailable(fmt.Errorf("redis: %w: only %d of %d replicas have the fence", errReplicas, copied.Val(), p.cfg.WaitReplicas))
	}
	return nil
}
