// Package trial measures peers: each trial has its own database, topic and relay process, and the
// same producers and the same receiver as all others.
package trial

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/postrider/postrider/test/proof/peers/broker"
	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// Options configure what is measured and for how long.
type Options struct {
	Peers   []string      `json:"peers"`
	Brokers []string      `json:"brokers"`
	Main    string        `json:"main"` // the broker of the trials that are about the database
	Works   []string      `json:"works"`
	Repeat  int           `json:"repeat"`
	Phase   time.Duration `json:"phase"` // duration of each measurement
	Warm    time.Duration `json:"warm"`
	Hold    time.Duration `json:"hold"` // age that the old transaction reaches
	Cap     time.Duration `json:"cap"`  // time limit for a backlog
	Rate    int           `json:"rate"` // messages per second of the steady trials
	Writers int           `json:"writers"`
	Backlog int           `json:"backlog"`
	Stock   bool          `json:"stock"`
}

// Lab is the environment of the trials.
type Lab struct {
	Options
	Programs  peer.Programs
	Server    string            // URL of the database server
	Addresses map[string]string // of the brokers
	Record    func(result.Line) error
	Say       func(format string, args ...any)

	brokers map[string]broker.Broker
	trials  int
}

// Trials lists the values of --works.
var Trials = []string{"bare", "steady", "drain", "held", "order"}

// Open connects to the brokers.
func (l *Lab) Open(ctx context.Context) (err error) {
	l.brokers = map[string]broker.Broker{}
	for _, kind := range l.Options.Brokers {
		if l.brokers[kind], err = broker.Open(ctx, kind, l.Addresses[kind]); err != nil {
			return fmt.Errorf("trial: %s: %w", kind, err)
		}
	}
	return nil
}

// Close closes the connections.
func (l *Lab) Close() {
	for _, b := range l.brokers {
		b.Close()
	}
}

// Run runs all trials of all repetitions. A failed trial is recorded, and the others continue.
func (l *Lab) Run(ctx context.Context) error {
	plan, err := l.plan()
	if err != nil {
		return err
	}
	var expected time.Duration
	for _, t := range plan {
		expected += l.expected(t)
	}
	l.Say("%d trials, about %.0f minutes", len(plan), expected.Minutes())
	for i, t := range plan {
		began := time.Now()
		cells, err := l.try(ctx, t)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			l.Say("%s: %s", t, err)
			cells = append(cells, result.Cell{Work: t.work, Error: firstLine(err)})
		}
		for _, c := range cells {
			c.Repetition, c.At, c.Broker, c.Stock = t.repetition, began.UTC().Truncate(time.Second), t.broker, l.Stock
			if c.Peer = result.Bare; t.peer != nil {
				c.Peer = t.peer.Name()
			}
			if err := l.Record(result.Line{Cell: &c}); err != nil {
				return err
			}
		}
		l.Say("%3d of %d  %-45s %5.1f s  %s", i+1, len(plan), t, time.Since(began).Seconds(), summary(cells))
	}
	return nil
}

// try runs a trial in a session, with a timeout that only a hanging trial reaches.
func (l *Lab) try(ctx context.Context, t planned) (cells []result.Cell, err error) {
	ctx, cancel := context.WithTimeout(ctx, l.Hold+l.Cap+4*l.Phase+startup+5*time.Minute)
	defer cancel()
	l.trials++
	s, err := l.open(ctx, t, fmt.Sprintf("peers%d_%d", os.Getpid(), l.trials))
	if err != nil {
		return nil, err
	}
	defer func() {
		if closed := s.close(ctx); err == nil {
			err = closed
		}
	}()
	if cells, err = t.run(ctx, s); err != nil {
		err = fmt.Errorf("%w%s", err, s.tails())
	}
	return cells, err
}
