package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/sleep"
)

// jobRun is one run of a job.
type jobRun[Tx any] struct {
	*Reconciler[Tx]
	job    *Job[Tx]
	claim  Claim
	began  time.Time // by this process's clock, for durations
	dryRun bool
	limit  int
	show   func(postrider.Message)
	done   Counts
	owed   time.Duration // delay that Rate requires before the next transaction
}

var (
	errSplit  = errors.New("reconcile: there is more than one batch")
	errDryRun = errors.New("reconcile: dry run")
)

// run claims a job and runs it. If now is not set, it returns only errors of the claim and of
// recording the run; it records a failure of the job itself.
func (p *Reconciler[Tx]) run(ctx context.Context, job *Job[Tx], o Options, now bool) (Run, error) {
	claim, err := p.store.Claim(ctx, job.Name, p.cfg.Holder, p.cfg.Lease, now)
	if err != nil {
		return Run{}, err
	}
	s := p.newRun(job, o)
	s.claim = claim
	failure := s.process(ctx, o.Since)
	report := Run{Started: claim.Now, Finished: claim.Now.Add(time.Since(s.began)), Holder: claim.Holder, Counts: s.done}
	if failure != nil {
		report.Error = failure.Error()
		p.tally[job.Name].failed.Add(1)
	}
	p.tally[job.Name].runs.Add(1)
	next := time.Time{}
	if !now && ctx.Err() == nil { // if this process stops, leave the job due, so that another one continues at once
		next = job.Schedule.Next(claim.Now)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if errors.Is(failure, ErrLost) {
		return report, failure
	}
	err = p.store.Finish(end, claim, next, job.Window, report.Error)
	if s.done.Found > 0 || failure != nil {
		p.cfg.Logger.Info("reconcile: reconciled", "job", job.Name, "found", s.done.Found, "fixed", s.done.Fixed, "err", failure)
	}
	if now || err != nil {
		return report, errors.Join(failure, err)
	}
	return report, nil // a failed job runs again when it is due next
}

// dryRun runs a job without a claim. It uses this process's clock, because it writes nothing to the
// store.
func (p *Reconciler[Tx]) dryRun(ctx context.Context, job *Job[Tx], o Options) (Run, error) {
	s := p.newRun(job, o)
	s.claim = Claim{Job: job.Name, Holder: p.cfg.Holder, Now: s.began}
	err := s.process(ctx, o.Since)
	return Run{Started: s.began, Finished: time.Now(), Holder: p.cfg.Holder, Counts: s.done}, err
}

func (p *Reconciler[Tx]) newRun(job *Job[Tx], o Options) *jobRun[Tx] {
	s := &jobRun[Tx]{Reconciler: p, job: job, began: time.Now(), dryRun: o.DryRun, limit: job.Limit, show: o.Show}
	if o.Limit > 0 {
		s.limit = o.Limit
	}
	if s.show == nil {
		s.show = func(postrider.Message) {}
	}
	return s
}

// process handles the whole window.
func (s *jobRun[Tx]) process(ctx context.Context, window time.Duration) error {
	if window == 0 {
		window = s.job.Window
	}
	since, until := s.claim.Now.Add(-window), s.claim.Now.Add(-s.job.Grace)
	if s.job.Check != nil {
		return s.job.Check(ctx, &Round{Since: since, Until: until, Batch: s.job.Batch, Timeout: s.job.Timeout, mend: s.mend})
	}
	return s.processPart(ctx, since, until)
}

// smallest is the length below which a part of the window is not divided.
const smallest = time.Second

// processPart handles a part of the window in one transaction or, if it contains more than a batch,
// its two halves. So it needs neither an order of the rows nor a position to continue from, and
// rows that were handled but still lack their effect do not block the others.
func (s *jobRun[Tx]) processPart(ctx context.Context, since, until time.Time) error {
	left := s.limit - int(s.sent())
	if left <= 0 {
		return nil
	}
	limit, divisible := min(s.job.Batch, left), until.Sub(since) > smallest
	if !divisible {
		limit = left
	}
	err := s.transaction(ctx, func(ctx context.Context, tx Tx) (Counts, []postrider.Message, error) {
		found, err := s.job.Find(ctx, tx, since, until, limit)
		if err != nil {
			return Counts{}, nil, err
		}
		if divisible && len(found) >= limit {
			return Counts{}, nil, errSplit
		}
		if found, err = unique(found[:min(len(found), limit)]); err != nil || s.dryRun {
			return Counts{Found: int64(len(found))}, found, err
		}
		return s.emit(ctx, tx, found)
	})
	if errors.Is(err, errSplit) {
		middle := since.Add(until.Sub(since) / 2).Truncate(time.Microsecond) // the precision of databases
		if err = s.processPart(ctx, since, middle); err == nil {
			err = s.processPart(ctx, middle, until)
		}
	}
	return err
}

// sent returns the number of messages that Limit applies to.
func (s *jobRun[Tx]) sent() int64 {
	if s.dryRun {
		return s.done.Found
	}
	return s.done.Fixed
}

// transaction runs do, counts its result, and sets the delay that Rate requires before the next
// transaction.
func (s *jobRun[Tx]) transaction(ctx context.Context, do func(context.Context, Tx) (Counts, []postrider.Message, error)) error {
	if err := s.throttle(ctx); err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, s.job.Timeout)
	defer cancel()
	var counts Counts
	var sent []postrider.Message
	err := s.db.Do(within, func(ctx context.Context, tx Tx) (err error) {
		if counts, sent, err = do(ctx, tx); err != nil {
			return err
		}
		if s.dryRun {
			return errDryRun
		}
		return s.store.Count(ctx, tx, s.claim, counts)
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return err
	}
	for _, m := range sent {
		s.show(m)
	}
	s.done.Add(counts)
	if s.dryRun {
		return nil
	}
	s.tally[s.job.Name].found.Add(counts.Found)
	s.tally[s.job.Name].fixed.Add(counts.Fixed)
	if s.job.Rate > 0 {
		s.owed = time.Duration(counts.Fixed) * time.Second / time.Duration(s.job.Rate)
	}
	return nil
}

// throttle waits as long as Rate requires, and renews the claim meanwhile.
func (s *jobRun[Tx]) throttle(ctx context.Context) error {
	for s.owed > 0 && ctx.Err() == nil {
		delay := min(s.owed, s.claim.Lease/4)
		sleep.For(ctx, delay)
		if s.owed -= delay; s.owed > 0 {
			err := s.db.Do(ctx, func(ctx context.Context, tx Tx) error { return s.store.Count(ctx, tx, s.claim, Counts{}) })
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// unique removes duplicates within a batch, and returns an error for a message without a dedup key,
// which every run would send again.
func unique(found []postrider.Message) ([]postrider.Message, error) {
	seen := make(map[string]bool, len(found))
	kept := make([]postrider.Message, 0, len(found))
	for _, m := range found {
		if m.DedupKey == "" {
			return nil, &postrider.InvalidError{Field: "DedupKey", Reason: fmt.Sprintf("is empty in a message of type %q that Find has returned: "+
				"without it every run would send it again; give it the key that was used when the row was written", m.Type)}
		}
		if !seen[m.DedupKey] {
			seen[m.DedupKey] = true
			if m.ID.IsZero() {
				m.ID = postrider.NewID() // known here, so that Show gets it
			}
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// emit enqueues messages. It enqueues those that were enqueued before once more, under a new dedup
// key, if Again allows it. It returns the messages that were sent.
func (s *jobRun[Tx]) emit(ctx context.Context, tx Tx, found []postrider.Message) (Counts, []postrider.Message, error) {
	n := Counts{Found: int64(len(found))}
	if len(found) == 0 {
		return n, nil, nil
	}
	repeats, err := s.outbox.Offer(ctx, tx, found...)
	if err != nil {
		return n, nil, err
	}
	sent := without(found, repeats)
	if len(repeats) > 0 && s.job.Again.Max > 0 {
		keys := make([]string, len(repeats))
		for i, at := range repeats {
			keys[i] = found[at].DedupKey
		}
		numbers, err := s.store.Again(ctx, tx, s.claim, keys, s.job.Again)
		if err != nil {
			return n, nil, err
		}
		var again []postrider.Message
		for i, at := range repeats {
			if numbers[i] > 0 {
				m := found[at]
				m.ID, m.DedupKey = postrider.NewID(), m.DedupKey+"#reconciler:"+strconv.Itoa(numbers[i])
				again = append(again, m)
			}
		}
		if len(again) > 0 {
			if repeats, err = s.outbox.Offer(ctx, tx, again...); err != nil {
				return n, nil, err
			}
			sent = append(sent, without(again, repeats)...)
		}
	}
	n.Fixed = int64(len(sent))
	return n, sent, nil
}

// without returns a copy without the messages at the given indexes, which are sorted.
func without(msgs []postrider.Message, places []int) []postrider.Message {
	kept := make([]postrider.Message, 0, len(msgs))
	for i, m := range msgs {
		if len(places) > 0 && places[0] == i {
			places = places[1:]
			continue
		}
		kept = append(kept, m)
	}
	return kept
}
