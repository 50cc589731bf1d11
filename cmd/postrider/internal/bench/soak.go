package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"time"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// SoakPlan configures [Soak].
type SoakPlan struct {
	For      time.Duration
	Load     float64 // share of the full rate, 0 to 1
	Broker   broker.Driver
	Settings broker.Settings
	Command  string // recorded in the result
	Build    string
}

// Validate reports all invalid settings.
func (p *SoakPlan) Validate() error {
	var errs []error
	if p.For < 10*time.Second {
		errs = append(errs, fmt.Errorf("bench: --for is %s: want at least 10s", p.For))
	}
	if !(p.Load > 0) || p.Load > 1 {
		errs = append(errs, fmt.Errorf("bench: --load is %g%%: want more than 0%% and at most 100%%", p.Load*100))
	}
	if p.Broker.Consumer == nil {
		errs = append(errs, fmt.Errorf("bench: --broker is %s: there is nothing to receive from", p.Broker.Name))
	}
	return errors.Join(errs...)
}

// Ring returns a layout in which the log and the inbox turn often enough for their sizes to settle
// in the first half.
func (p *SoakPlan) Ring() Ring {
	return Ring{
		Slots:  6,
		Period: max(3*time.Second, (p.For / 50).Truncate(time.Second)),
		Inbox:  7 * p.inboxPeriod(),
	}
}

// inboxPeriod returns how long one of the inbox's ten slots is written.
func (p *SoakPlan) inboxPeriod() time.Duration {
	return min(max(3*time.Second, (p.For/24).Truncate(time.Second)), 3*time.Minute)
}

// interval returns the time between two samples.
func (p *SoakPlan) interval() time.Duration { return max(time.Second, p.For/60) }

// calibration returns how long the full rate is measured.
func (p *SoakPlan) calibration() time.Duration {
	return min(max(p.For/10, 4*time.Second), 30*time.Second)
}

// SoakResult is the result of a soak test.
type SoakResult struct {
	Taken    time.Time     `json:"taken"`
	Command  string        `json:"command"`
	Build    string        `json:"build"`
	Machine  scale.Machine `json:"machine"`
	Server   string        `json:"server"`
	Broker   string        `json:"broker"`
	Payload  int           `json:"payload"`
	Shards   int           `json:"shards"`
	Seconds  float64       `json:"seconds"`
	Full     float64       `json:"full_per_second"` // highest rate of messages from commit to effect
	Load     float64       `json:"load"`
	Rate     int           `json:"rate"` // requested
	Messages int64         `json:"messages"`
	Missing  int64         `json:"missing"` // messages without their effect at the end

	Samples []SoakSample `json:"samples"`
	Trends  []Trend      `json:"trends"`
	Flat    bool         `json:"flat"`
}

// SoakSample is the state at one time, with rates since the previous sample.
type SoakSample struct {
	At        float64 `json:"at"` // seconds
	Committed float64 `json:"committed_per_second"`
	Handled   float64 `json:"handled_per_second"`
	P50       float64 `json:"p50_ms"` // commit to effect
	P99       float64 `json:"p99_ms"`
	Waiting   int64   `json:"waiting"`    // committed messages without their effect
	Machine   float64 `json:"machine_ms"` // duration of a hash and an fsync meanwhile

	RelayMemory     int64 `json:"relay_memory_bytes"`
	RelayGoroutines int   `json:"relay_goroutines"`
	RelayFiles      int   `json:"relay_files"`
	Memory          int64 `json:"consumer_memory_bytes"` // of this process, which consumes and produces
	Goroutines      int   `json:"consumer_goroutines"`
	Files           int   `json:"consumer_files"`

	Log        int64 `json:"log_bytes"`
	Inbox      int64 `json:"inbox_bytes"`
	LedgerRows int64 `json:"ledger_rows"`
}

// Soak measures the highest rate of messages from commit to effect, and then runs at a share of it
// for a long time: with producers and consumers with an inbox in this process, a relay in a
// separate process, and a broker between them. The schema has the layout of [SoakPlan.Ring].
func Soak(ctx context.Context, l *Lab, plan SoakPlan) (r SoakResult, err error) {
	if err := cmp.Or(needsLinux(), plan.Validate()); err != nil {
		return r, err
	}
	r = SoakResult{
		Taken: time.Now().UTC().Truncate(time.Second), Command: plan.Command, Build: plan.Build, Server: l.Server, Broker: plan.Broker.Name,
		Payload: l.Payload, Shards: l.Shards, Load: plan.Load,
		Machine: scale.Machine{
			Processor: processorName(), Cores: runtime.NumCPU(), Memory: machineMemory(), System: runtime.GOOS + "/" + runtime.GOARCH,
		},
	}
	line, err := l.openLine(ctx, &plan)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, line.close()) }()
	if r.Full, err = line.calibrate(ctx, plan.calibration()); err != nil {
		return r, err
	}
	if r.Rate = int(math.Floor(r.Full * plan.Load)); r.Rate < 1 {
		return r, fmt.Errorf("bench: the full rate is %.1f messages/s: there is nothing to soak", r.Full)
	}
	if r.Samples, err = line.soak(ctx, r.Rate, &plan); err != nil {
		return r, err
	}
	if err := line.drain(ctx); err != nil {
		return r, err
	}
	r.Messages, r.Missing = line.notes.committed.Load(), line.notes.waiting()
	r.Seconds = r.Samples[len(r.Samples)-1].At
	r.evaluate(&plan)
	return r, nil
}
