package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/postrider/postrider"
)

// sortie is one run of a job.
type sortie[Tx any] struct {
	*Reconciler[Tx]
	job    *Job[Tx]
	claim  Claim
	began  time.Time // on this process's clock, for durations
	dryRun bool
	limit  int
	show   func(postrider.Message)
	done   Counts
	pause  time.Duration // owed to Rate
}

var (
	errSplit  = errors.New("reconcile: there is more than one batch")
	errDryRun = errors.New("reconcile: dry run")
)

// run claims a job and runs it. Its error is about the claim; that of the job, too, is recorded.
func (p *Reconciler[Tx]) run(ctx context.Context, job *Job[Tx], o Options, now bool) (Run, error) {
	claim, err := p.store.Claim(ctx, job.Name, p.cfg.Holder, p.cfg.Lease, now)
	if err != nil {
		return Run{}, err
	}
	s := p.sortie(job, o)
	s.claim = claim
	failure := s.reconciler(ctx, o.Since)
	report := Run{Started: claim.Now, Finished: claim.Now.Add(time.Since(s.began)), Holder: claim.Holder, Counts: s.done}
	if failure != nil {
		report.Error = failure.Error()
		p.tally[job.Name].failed.Add(1)
	}
	p.tally[job.Name].runs.Add(1)
	next := time.Time{}
	if !now && ctx.Err() == nil { // a process that stops leaves the job to the others, at once
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
	return report, nil // a failed job is due again when its schedule says so
}

// dryRun looks without a claim. The store's clock is not asked: nothing is written.
func (p *Reconciler[Tx]) dryRun(ctx context.Context, job *Job[Tx], o Options) (Run, error) {
	s := p.sortie(job, o)
	s.claim = Claim{Job: job.Name, Holder: p.cfg.Holder, Now: s.began}
	err := s.reconciler(ctx, o.Since)
	return Run{Started: s.began, Finished: time.Now(), Holder: p.cfg.Holder, Counts: s.done}, err
}

func (p *Reconciler[Tx]) sortie(job *Job[Tx], o Options) *sortie[Tx] {
	s := &sortie[Tx]{Reconciler: p, job: job, began: time.Now(), dryRun: o.DryRun, limit: job.Limit, show: o.Show}
	if o.Limit > 0 {
		s.limit = o.Limit
	}
	if s.show == nil {
		s.show = func(postrider.Message) {}
	}
	return s
}

// reconciler looks at the whole window.
func (s *sortie[Tx]) reconciler(ctx context.Context, window time.Duration) error {
	if window == 0 {
		window = s.job.Window
	}
	since, until := s.claim.Now.Add(-window), s.claim.Now.Add(-s.job.Grace)
	if s.job.Check != nil {
		return s.job.Check(ctx, &Round{Since: since, Until: until, Batch: s.job.Batch, Timeout: s.job.Timeout, mend: s.mend})
	}
	return s.look(ctx, since, until)
}

// smallest is the length of a part of the window that is not divided any more.
const smallest = time.Second

// look deals with a part of the window in one transaction or, if that would be too much, with its halves. So it needs no
// order of the rows and no place to go on from, and rows that were dealt with and still lack their effect are in nobody's way.
func (s *sortie[Tx]) look(ctx context.Context, since, until time.Time) error {
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
		middle := since.Add(until.Sub(since) / 2).Truncate(time.Microsecond) // what databases can tell apart
		if err = s.look(ctx, since, middle); err == nil {
			err = s.look(ctx, middle, until)
		}
	}
	return err
}

// sent is what Limit is about.
func (s *sortie[Tx]) sent() int64 {
	if s.dryRun {
		return s.done.Found
	}
	return s.done.Fixed
}

// transaction runs do, counts what it has done, and waits as long as Rate says before the next one.
func (s *sortie[Tx]) transaction(ctx context.Context, do func(context.Context, Tx) (Counts, []postrider.Message, error)) error {
	if err := s.rest(ctx); err != nil {
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
		s.pause = time.Duration(counts.Fixed) * time.Second / time.Duration(s.job.Rate)
	}
	return nil
}

// rest waits as long as Rate says, and keeps the claim meanwhile.
func (s *sortie[Tx]) rest(ctx context.Context) error {
	for s.pause > 0 && ctx.Err() == nil {
		nap := min(s.pause, s.claim.Lease/4)
		sleep(ctx, nap)
		if s.pause -= nap; s.pause > 0 {
			err := s.db.Do(ctx, func(ctx context.Context, tx Tx) error { return s.store.Count(ctx, tx, s.claim, Counts{}) })
			if err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// unique leaves out repetitions within a batch, and refuses what could be sent again and again.
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
				m.ID = postrider.NewID() // so that it is known under which one it goes
			}
			kept = append(kept, m)
		}
	}
	return kept, nil
}

// emit offers messages, and once more those that were told before and may be told again. It returns those that were sent.
func (s *sortie[Tx]) emit(ctx context.Context, tx Tx, found []postrider.Message) (Counts, []postrider.Message, error) {
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

// without returns a copy that lacks the messages at the given places, which are in order.
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
