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

// leaseBucket is the bucket of all leases. Its keys are stream and group, its values the owners and the lengths of their leases; an
// empty one was released.
const leaseBucket = "postrider-leases"

// leases keeps the lease of a group. Each renewal is a new revision of its entry, and each change names the revision that it
// follows. So the server needs to know nothing of time, and of two who take the lease at the same time one is refused.
type leases struct {
	config *Config
	owner  string // nobody else is, not even this process at another time

	link     *link
	bucket   jetstream.KeyValue
	key      string
	revision uint64 // last seen, or ours; 0 if there was none
	seen     string // the owner that was last seen
	known    bool   // an entry was seen
}

func (c *Config) leases() *leases {
	host, _ := os.Hostname()
	return &leases{config: c, owner: host + "/" + rand.Text()[:8]}
}

// leaseKey puts what keys of a bucket cannot have in hexadecimal digits.
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

// open connects, unless there is a connection. It is one of its own: a renewal must not wait behind messages.
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

// find finds the bucket, or makes it. It is as safe as the stream whose consumers it serves, and on disk: an entry that a crash of
// the server takes away would let a second process begin.
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
		if errors.Is(err, jetstream.ErrBucketExists) { // another process was faster, for a stream with other replicas
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
		l.config.Logger.Warn("nats: the leases have fewer replicas than the stream: nobody receives while their server is away",
			"bucket", leaseBucket, "replicas", has, "stream", name, "want", replicas,
			"remedy", fmt.Sprintf("nats stream edit KV_%s --replicas %d", leaseBucket, replicas))
	}
	return nil
}

// Look implements [lease.Store]. An entry that is not there any more may be that of a living owner: somebody has deleted it.
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
		// A crash of the server can take revisions back, and others get their numbers.
		Version: fmt.Sprint(entry.Revision(), " ", entry.Created().UnixNano()),
		Length:  length,
	}, nil
}

// ourValue says that the lease is ours.
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

// put makes a value the successor of the revision that is known.
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

// conflict says whether another revision came in between.
func conflict(err error) bool {
	return errors.Is(err, jetstream.ErrKeyRevisionMismatch) || errors.Is(err, jetstream.ErrKeyExists)
}

// Renew implements [lease.Store]. The revision in between may be our own, from a renewal whose answer was lost.
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
	return err == nil, err // if it is not, the entry that was read was an old one: the next renewal finds out
}

// ours says whether the entry is ours, and takes note of its revision.
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
