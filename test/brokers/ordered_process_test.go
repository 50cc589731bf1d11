package brokers_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// leaseTaken is the log message of a consumer that begins to receive.
const leaseTaken = "consumer: lease taken, receiving"

// record runs a consumer process that records when it takes the lease and when a call of its
// handler begins.
func (o order) record() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	f, err := os.OpenFile(o.Record, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	write := func(at time.Time, what string) { // one write per line, so that lines of several processes do not mix
		_, _ = fmt.Fprintf(f, "%d %d %s\n", at.UnixNano(), os.Getpid(), what)
	}
	driver, err := broker.Lookup(o.Driver)
	if err != nil {
		return err
	}
	c, err := driver.Subscribe(&broker.Settings{URL: o.URL, Values: o.Values, Logger: slog.New(taking{write})})
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		at := time.Now()
		write(at, string(m.Payload))
		select {
		case <-time.After(rand.N(30 * time.Millisecond)):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// taking is a slog handler that records when the lease is taken, and prints errors.
type taking struct{ write func(time.Time, string) }

func (t taking) Enabled(context.Context, slog.Level) bool { return true }
func (t taking) WithAttrs([]slog.Attr) slog.Handler       { return t }
func (t taking) WithGroup(string) slog.Handler            { return t }
func (t taking) Handle(_ context.Context, r slog.Record) error {
	if r.Message == leaseTaken {
		t.write(r.Time, "taken")
	}
	if r.Level >= slog.LevelError {
		fmt.Fprintln(os.Stderr, r.Message)
	}
	return nil
}

// begun is a line of the record: a handler call, or a taken lease.
type begun struct {
	at     time.Time
	by     int // process
	taken  bool
	key, n int
}

// records reads the growing file that several processes write.
type records struct {
	file *os.File
	rest []byte // an incomplete line
	all  []begun
}

func newRecords(t *testing.T) *records {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "record")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return &records{file: f}
}

// update reads new lines.
func (r *records) update(t *testing.T) {
	t.Helper()
	text, err := io.ReadAll(r.file)
	if err != nil {
		t.Fatal(err)
	}
	text = append(r.rest, text...)
	r.rest = nil
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			r.rest = line
			return
		}
		fields := strings.Fields(string(line))
		if len(fields) != 3 {
			t.Fatalf("the record has %q", line)
		}
		at, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		b := begun{at: time.Unix(0, at), taken: fields[2] == "taken"}
		if b.by, err = strconv.Atoi(fields[1]); err != nil {
			t.Fatal(err)
		}
		if !b.taken {
			if _, err := fmt.Sscanf(fields[2], "%d/%d", &b.key, &b.n); err != nil {
				t.Fatal(err)
			}
		}
		r.all = append(r.all, b)
	}
}

// owner returns the process that has begun the latest call.
func (r *records) owner() int {
	for _, b := range slices.Backward(r.all) {
		if !b.taken {
			return b.by
		}
	}
	return 0
}

// handled summarizes the complete record.
type handled struct {
	calls, distinct int
	disorder        int           // first calls of a message that began after one of a later message of its key
	intruding       int           // calls that began in a process after another had taken the lease and begun one
	intruders       []string      // some of these
	takeovers       int           // of the lease
	longest         time.Duration // the longest time without a new call, counted again from each fault
	after           fault         // the fault before it
}

// fault is a fault of a process.
type fault struct {
	at   time.Time
	kind string
	pid  int
}

func (h handled) String() string {
	return fmt.Sprintf("%d calls, %d repetitions, %d out of order, %d without the lease, %d terms of it, longest gap %v, after: %s",
		h.calls, h.calls-h.distinct, h.disorder, h.intruding, h.takeovers, h.longest.Round(time.Millisecond), h.after.kind)
}

// summarize evaluates the record. Faults are in order of time.
func (r *records) summarize(faults []fault) (h handled) {
	slices.SortStableFunc(r.all, func(a, b begun) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
	type message struct{ key, n int }
	seen := make(map[message]bool)
	last := make(map[int]int)
	owner := 0
	taken := make(map[int]time.Time)
	var before time.Time
	for _, b := range r.all {
		if b.taken {
			taken[b.by] = b.at
			h.takeovers++
			continue
		}
		h.calls++
		switch {
		case b.by == owner || taken[b.by].IsZero():
		case taken[b.by].After(taken[owner]): // taken, but the machine did not let it begin a call: not the owner
			owner = b.by
		default:
			h.intruding++
			if len(h.intruders) < 20 {
				h.intruders = append(h.intruders, fmt.Sprintf("%v: %d begins %d/%d; it took the lease %v before, and %d did %v before",
					b.at.Format("05.000"), b.by, b.key, b.n, b.at.Sub(taken[b.by]), owner, b.at.Sub(taken[owner])))
			}
		}
		since := fault{at: before}
		for ; len(faults) > 0 && faults[0].at.Before(b.at); faults = faults[1:] {
			since = faults[0]
		}
		if gap := b.at.Sub(since.at); !before.IsZero() && gap > h.longest {
			h.longest, h.after = gap, since
		}
		before = b.at
		if m := (message{b.key, b.n}); seen[m] {
			continue
		} else {
			seen[m] = true
		}
		if top, ok := last[b.key]; ok && b.n < top {
			h.disorder++
		} else {
			last[b.key] = b.n
		}
	}
	h.distinct = len(seen)
	return h
}
