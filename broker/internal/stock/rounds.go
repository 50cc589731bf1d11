package stock

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/postrider/postrider/broker"
)

// Rounds lets recalls of one name share their reads: after a crash, all shards ask at once for the
// same messages. A recall is served only by a read that begins after it was called, because what is
// stored before its fence must be seen. The zero value is ready to use.
type Rounds struct {
	mu    sync.Mutex
	names map[string]*line
}

// line is the recalls of one name.
type line struct {
	turn    chan struct{} // holds a token while a read is under way
	waiting []*recall     // for the next one
	users   int
}

type recall struct {
	since time.Time
	done  chan struct{} // closed after the read; then first and err are set
	first time.Time     // since when it has read
	err   error

	mu    sync.Mutex
	found func(id string) // nil once the caller has given up
}

// Reader reports what a name has stored since a time. Calls of found do not overlap.
type Reader func(ctx context.Context, since time.Time, found func(id string)) error

// Recall calls found with what the name has stored since a time, as read reports it.
func (r *Rounds) Recall(ctx context.Context, name string, since time.Time, found func(id string), read Reader) error {
	own := &recall{since: since, done: make(chan struct{}), found: found}
	l := r.join(name, own)
	defer r.leave(name, l)
	select {
	case l.turn <- struct{}{}:
		select {
		case <-own.done: // the read before was for this one too
		default:
			r.serve(ctx, l, read)
		}
		<-l.turn
	case <-own.done:
	case <-ctx.Done():
		own.mu.Lock()
		own.found = nil
		own.mu.Unlock()
		return ctx.Err()
	}
	if errors.Is(own.err, broker.ErrCannotRecall) && own.first.Before(since) { // perhaps only so far back
		return read(ctx, since, found)
	}
	return own.err
}

func (r *Rounds) join(name string, own *recall) *line {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.names[name]
	if l == nil {
		if r.names == nil {
			r.names = make(map[string]*line)
		}
		l = &line{turn: make(chan struct{}, 1)}
		r.names[name] = l
	}
	l.users++
	l.waiting = append(l.waiting, own)
	return l
}

func (r *Rounds) leave(name string, l *line) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(r.names, name)
	}
}

// serve reads once for all that wait. The caller has the turn, and waits itself.
func (r *Rounds) serve(ctx context.Context, l *line, read Reader) {
	r.mu.Lock()
	all := l.waiting
	l.waiting = nil
	r.mu.Unlock()
	first := all[0].since
	for _, one := range all {
		if one.since.Before(first) {
			first = one.since
		}
	}
	err := read(ctx, first, func(id string) {
		for _, one := range all {
			one.mu.Lock()
			if one.found != nil {
				one.found(id)
			}
			one.mu.Unlock()
		}
	})
	for _, one := range all {
		one.first, one.err = first, err
		close(one.done)
	}
}
