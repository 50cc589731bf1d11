package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/saga"
)

var _ saga.Admin = (*Sagas)(nil)

// List implements [saga.Admin].
func (s *Sagas) List(ctx context.Context, filter saga.Filter, after *saga.Instance, limit int) ([]saga.Instance, error) {
	var found []saga.Instance
	err := s.store.locked(ctx, func(time.Time) error {
		for _, kept := range s.all {
			i := kept.committed
			if i == nil || !filter.Matches(i) || after != nil && newestFirst(*i, *after) <= 0 {
				continue
			}
			brief := *i
			brief.Data, brief.Steps, brief.Signals = nil, nil, nil
			found = append(found, brief)
		}
		return nil
	})
	slices.SortFunc(found, newestFirst)
	return found[:min(len(found), limit)], err
}

func newestFirst(a, b saga.Instance) int {
	return cmp.Or(b.Started.Compare(a.Started), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
}

// Count implements [saga.Admin].
func (s *Sagas) Count(ctx context.Context, filter saga.Filter) (map[saga.Status]int, error) {
	counts := make(map[saga.Status]int)
	err := s.store.locked(ctx, func(time.Time) error {
		for _, kept := range s.all {
			if kept.committed != nil && filter.Matches(kept.committed) {
				counts[kept.committed.Status]++
			}
		}
		return nil
	})
	return counts, err
}

// Show implements [saga.Admin].
func (s *Sagas) Show(ctx context.Context, name, id string) (i *saga.Instance, err error) {
	err = s.store.locked(ctx, func(now time.Time) error {
		kept := s.all[sagaKey{name, id}]
		if kept == nil || kept.committed == nil {
			return saga.ErrNotFound
		}
		i = kept.committed.Clone()
		i.Now = now
		return nil
	})
	return i, err
}

// Act implements [saga.Admin].
func (s *Sagas) Act(ctx context.Context, by admin.By, act saga.Act, name, id, step string) (done bool, err error) {
	err = s.Do(ctx, func(ctx context.Context, tx *Tx) error {
		i, err := s.Lock(ctx, tx, name, id)
		if err != nil {
			return err
		}
		was := i.Status
		c, ok := act.Apply(i, step, func(step string) bool {
			held, _ := s.Hold(ctx, tx, name, id, step) // fails only if ctx has ended, and then Save fails too
			return held
		})
		if done = ok; !ok {
			return nil
		}
		if err := s.Save(ctx, tx, i, c); err != nil {
			return err
		}
		return s.store.locked(ctx, func(now time.Time) error {
			e := entryOf(by, "saga "+string(act), "", now)
			e.Count = 1
			e.Target = map[string]any{"saga": name, "id": id}
			if step != "" {
				e.Target["step"] = step
			}
			e.Before, e.After = map[string]any{"status": string(was)}, map[string]any{"status": string(i.Status)}
			s.store.record(e)
			return nil
		})
	})
	return done, err
}
