package trial

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
)

// planned is one trial.
type planned struct {
	repetition int
	peer       peer.Peer // nil: no peer at all
	broker     string
	work       string
	run        func(context.Context, *session) ([]result.Cell, error)
}

// String returns the name in progress output.
func (t planned) String() string {
	if t.peer == nil {
		return fmt.Sprintf("#%d %s", t.repetition, t.work)
	}
	return fmt.Sprintf("#%d %s, %s, %s", t.repetition, t.work, t.broker, t.peer.Name())
}

// plan orders the trials: each repetition is complete before the next one begins, and peers
// alternate in being first, so that changes of the machine during the run affect all of them.
func (l *Lab) plan() ([]planned, error) {
	var peers []peer.Peer
	for _, name := range l.Options.Peers {
		p, err := peer.Find(name)
		if err != nil {
			return nil, err
		}
		peers = append(peers, p)
	}
	for _, work := range l.Works {
		if !slices.Contains(Trials, work) {
			return nil, fmt.Errorf("trial: %q is none of %s", work, strings.Join(Trials, ", "))
		}
	}
	var plan []planned
	add := func(repetition int, p peer.Peer, at, work string, run func(context.Context, *session) ([]result.Cell, error)) {
		if slices.Contains(l.Works, work) {
			plan = append(plan, planned{repetition, p, at, work, run})
		}
	}
	for repetition := 1; repetition <= l.Repeat; repetition++ {
		add(repetition, nil, "", "bare", bare)
		for i := range peers {
			p := peers[(i+repetition-1)%len(peers)]
			for _, at := range l.Options.Brokers {
				if at == l.Main || !peer.Variant(p) {
					add(repetition, p, at, "steady", steady)
					add(repetition, p, at, "drain", drain)
				}
			}
			add(repetition, p, l.Main, "order", order)
			add(repetition, p, l.Main, "held", held)
		}
	}
	return plan, nil
}

// expected estimates how long a trial takes on an idle machine; the options determine most of it.
func (l *Lab) expected(t planned) time.Duration {
	const around = 2 * time.Second // setup, teardown, and the relay's start
	d := around
	if t.peer != nil && t.peer.Name() == "debezium" {
		d += 6 * time.Second
	}
	switch t.work {
	case "bare":
		return d + l.Warm + l.Phase
	case "steady":
		return d + l.Warm + 2*l.Phase + time.Second
	case "drain":
		if t.broker == l.Main {
			d += l.Warm + l.Phase
		}
		return d + l.Cap*2/3 + 4*time.Second
	case "held":
		return d + l.Warm + l.Hold + time.Second
	}
	return d + l.Phase + time.Second
}

// summary formats the main values of cells for progress output.
func summary(cells []result.Cell) string {
	var parts []string
	for _, c := range cells {
		switch c.Work {
		case result.Bare, result.Alone:
			parts = append(parts, fmt.Sprintf("%s %.0f/s", c.Work, c.CommittedPerSecond))
		case result.Latency, result.HeldLatency:
			parts = append(parts, fmt.Sprintf("%s %.1f/%.1f ms", c.Work, c.P50, c.P99))
		case result.Order:
			parts = append(parts, fmt.Sprintf("%d of %d inverted, %d lost, %d twice", c.Inversions, c.Committed, c.Lost, c.Duplicates))
		default:
			parts = append(parts, fmt.Sprintf("%s %.0f/s", c.Work, c.DeliveredPerSecond))
		}
	}
	return strings.Join(parts, ", ")
}

// firstLine keeps the logs of relays out of the results.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
