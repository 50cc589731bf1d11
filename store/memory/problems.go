package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/desk"
)

var (
	_ postrider.Reporter = (*feed)(nil)
	_ desk.Problems      = (*Store)(nil)
)

const (
	// maxProblems is how many names of a feed are kept.
	maxProblems = 1000
	// keepProblems is for how long a problem that is over is kept.
	keepProblems = 7 * 24 * time.Hour
)

// Report implements [postrider.Reporter].
func (f *feed) Report(ctx context.Context, problems []postrider.Problem) error {
	return f.locked(ctx, func(now time.Time) error {
		for _, p := range problems {
			f.ledger.report(p, now)
		}
		return nil
	})
}

func (l *ledger) report(p postrider.Problem, now time.Time) {
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
		known = &postrider.Problem{Name: p.Name, Since: now}
		l.problems[p.Name] = known
	} else if !known.Over.IsZero() {
		*known = postrider.Problem{Name: p.Name, Since: now}
	}
	known.Cause, known.Last = p.Cause, now
	known.Failures += p.Failures
}

// lessNeeded puts first what may be forgotten first: what is over, and of both the oldest.
func lessNeeded(a, b postrider.Problem) int {
	if over := a.Over.IsZero(); over != b.Over.IsZero() {
		if over {
			return 1
		}
		return -1
	}
	return a.Last.Compare(b.Last)
}

func (l *ledger) listProblems() []postrider.Problem {
	all := make([]postrider.Problem, 0, len(l.problems))
	for _, p := range l.problems {
		all = append(all, *p)
	}
	return all
}

// Problems implements [desk.Problems].
func (s *Store) Problems(ctx context.Context, feed string) ([]postrider.Problem, error) {
	var problems []postrider.Problem
	err := s.locked(ctx, func(time.Time) error {
		if l := s.ledgers[feed]; l != nil {
			problems = l.listProblems()
		}
		return nil
	})
	slices.SortFunc(problems, func(a, b postrider.Problem) int {
		return cmp.Or(b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	return problems, err
}
