package nats

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker/internal/lease"
)

var _ lease.Store = (*leases)(nil)

// leaseBucket is the bucket of all leases. A key is made of stream and group. A value holds the
// owner and the length of its lease; an empty value means that the lease was released.
const leaseBucket = "postrider-leases"

// leases stores the lease of a group. Each renewal writes a new revision of the entry and names the
// revision that it replaces. The server therefore needs no notion of time, and if two processes
// take the lease at once, one of them is refused.
type leases struct {
	config *Config
	owner  string // unique per call of Consume

	link     *link
	bucket   jetstream.KeyValue
	key      string
	revision uint64 // last seen or written; 0 if there was none
	seen     string // the owner that was last seen
	known    bool   // an entry was seen
}

func (c *Config) leases() *leases {
	host, _ := os.Hostname()
	return &leases{config: c, owner: host + "/" + rand.Text()[:8]}
}

// leaseKey builds a key, with characters that keys of a bucket cannot contain in hexadecimal.
func leaseKey(stream, group string) string {
	var b strings.Builder
	for i, name := range []string{stream, group} {
		if i > 0 {
			b.WriteByte('.')
		}
		for _, c := range []byte(name) {
			if c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' {
				b.WriteByte(c)
			} else {
				fmt.Fprintf(&b, "=%02X", c)
			}
		}
	}
	return b.String()
}

// open connects unless there is a connection. The leases have their own connection, so that a
// renewal does not wait behind messages.
func (l *leases) open(ctx context.Context) error {
	if l.link != nil && l.link.life.Err() == nil {
		return nil
	}
	l.close()
	link, err := l.config.connect(ctx, "postrider lease "+l.config.Group, nil)
	if err != nil {
		return err
	}
	l.link = link
	if err := l.find(ctx); err != nil {
		l.close()
		return err
	}
	return nil
}

func (l *leases) close() {
	if l.link != nil {
		l.link.Close()
		l.link = nil
	}
}

// find looks up the bucket, or creates it. It has as many replicas as the stream that it protects,
// and is on disk: losing an entry in a server crash would let a second process start.
func (l *leases) find(ctx context.Context) error {
	name, err := l.link.js.StreamNameBySubject(ctx, l.config.Name)
	if err != nil {
		return err
	}
	l.key = leaseKey(name, l.config.Group)
	stream, err := l.link.js.Stream(ctx, name)
	if err != nil {
		return err
	}
	replicas := max(stream.CachedInfo().Config.Replicas, 1)
	l.bucket, err = l.link.js.KeyValue(ctx, leaseBucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		l.bucket, err = l.link.js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: leaseBucket, Description: "Which process of a group receives, see the option ordered.", Replicas: replicas,
		})
		if errors.Is(err, jetstream.ErrBucketExists) { // another process created it first, for a stream with a different number of replicas
			l.bucket, err = l.link.js.KeyValue(ctx, leaseBucket)
		}
	}
	if err != nil {
		return fmt.Errorf("bucket %s: %w", leaseBucket, err)
	}
	status, err := l.bucket.Status(ctx)
	if err != nil {
		return err
	}
	if has := status.Config().Replicas; has < replicas {
		l.config.Logger.Warn("nats: the lease bucket has fewer replicas than the stream; no process receives while its server is down",
			"bucket", leaseBucket, "replicas", has, "stream", name, "want", replicas,
			"remedy", fmt.Sprintf("nats stream edit KV_%s --replicas %d", leaseBucket, replicas))
	}
	return nil
}

// Look implements [lease.Store]. If an entry was seen before and is now missing, somebody has
// deleted it, and its owner may still be alive.
func (l *leases) Look(ctx context.Context) (lease.Sight, error) {
	if err := l.open(ctx); err != nil {
		return lease.Sight{}, err
	}
	entry, err := l.bucket.Get(ctx, l.key)
	switch {
	case errors.Is(err, jetstream.ErrKeyNotFound):
		l.revision, l.seen = 0, ""
		return lease.Sight{Free: !l.known, Version: "deleted"}, nil
	case err != nil:
		return lease.Sight{}, err
	}
	l.known, l.revision = true, entry.Revision()
	owner, text, _ := strings.Cut(string(entry.Value()), " ")
	length, _ := time.ParseDuration(text)
	l.seen = owner
	return lease.Sight{
		Free: owner == "" || owner == l.owner,
		// A server crash can roll back revisions, so that their numbers are used again.
		Version: fmt.Sprint(entry.Revision(), " ", entry.Created().UnixNano()),
		Length:  length,
	}, nil
}

// ourValue returns the value of an entry that this process owns.
func (l *leases) ourValue() string { return l.owner + " " + l.config.Lease.String() }

// Take implements [lease.Store].
func (l *leases) Take(ctx context.Context) (bool, error) {
	err := l.open(ctx)
	if err == nil {
		err = l.put(ctx, l.ourValue())
	}
	if conflict(err) {
		return false, nil
	}
	return err == nil, err
}

// put replaces the known revision with a value.
func (l *leases) put(ctx context.Context, value string) (err error) {
	var revision uint64
	if l.revision == 0 {
		revision, err = l.bucket.Create(ctx, l.key, []byte(value))
	} else {
		revision, err = l.bucket.Update(ctx, l.key, []byte(value), l.revision)
	}
	if err == nil {
		l.revision = revision
	}
	return err
}

// conflict reports whether another revision was written in between.
func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists)
}

// Renew implements [lease.Store]. The conflicting revision may be our own, from a renewal whose
// answer was lost.
func (l *leases) Renew(ctx context.Context) (bool, error) {
	err := l.open(ctx)
	if err == nil {
		err = l.put(ctx, l.ourValue())
	}
	if !conflict(err) {
		return err == nil, err
	}
	if ours, err := l.ours(ctx); !ours || err != nil {
		return false, err
	}
	err = l.put(ctx, l.ourValue())
	return err == nil, err // on failure the entry was read from an outdated replica; the next renewal resolves it
}

// ours reports whether this process owns the entry, and records its revision.
func (l *leases) ours(ctx context.Context) (bool, error) {
	_, err := l.Look(ctx)
	return err == nil && l.seen == l.owner, err
}

// Release implements [lease.Store].
func (l *leases) Release(ctx context.Context) error {
	if ours, err := l.ours(ctx); !ours || err != nil {
		return err
	}
	if err := l.put(ctx, ""); !conflict(err) {
		return err
	}
	return nil
}
