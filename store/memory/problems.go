package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var (
	_ feeds.Reporter = (*feed)(nil)
	_ admin.Problems = (*DB)(nil)
)

const (
	// maxProblems is the maximum number of names that are kept for a feed.
	maxProblems = 1000
	// keepProblems is how long a problem is kept after its end.
	keepProblems = 7 * 24 * time.Hour
)

// Report implements [feeds.Reporter].
func (f *feed) Report(ctx context.Context, problems []feeds.Problem) error {
	return f.locked(ctx, func(now time.Time) error {
		for _, p := range problems {
			f.ledger.report(p, now)
		}
		return nil
	})
}

func (l *ledger) report(p feeds.Problem, now time.Time) {
	known := l.problems[p.Name]
	if p.Failures == 0 {
		if known != nil && known.Over.IsZero() {
			known.Over = now
		}
		return
	}
	if known == nil {
		if len(l.problems) >= maxProblems {
			delete(l.problems, slices.MinFunc(l.listProblems(), lessNeeded).Name)
		}
		known = &feeds.Problem{Name: p.Name, Since: now}
		l.problems[p.Name] = known
	} else if !known.Over.IsZero() {
		*known = feeds.Problem{Name: p.Name, Since: now}
	}
	known.Cause, known.Last = p.Cause, now
	known.Failures += p.Failures
}

// lessNeeded orders problems for eviction: those that are over first, then by age.
func lessNeeded(a, b feeds.Problem) int {
	if over := a.Over.IsZero(); over != b.Over.IsZero() {
		if over {
			return 1
		}
		return -1
	}
	return a.Last.Compare(b.Last)
}

func (l *ledger) listProblems() []feeds.Problem {
	all := make([]feeds.Problem, 0, len(l.problems))
	for _, p := range l.problems {
		all = append(all, *p)
	}
	return all
}

// Problems implements [admin.Problems].
func (s *DB) Problems(ctx context.Context, feed string) ([]feeds.Problem, error) {
	var problems []feeds.Problem
	err := s.locked(ctx, func(time.Time) error {
		if l := s.ledgers[feed]; l != nil {
			problems = l.listProblems()
		}
		return nil
	})
	slices.SortFunc(problems, func(a, b feeds.Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	return problems, err
}
