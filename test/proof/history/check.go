package history

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
)

// Verdict is the result of comparing two histories.
type Verdict struct {
	Committed  int         // messages whose transaction committed
	Delivered  int         // distinct messages that arrived
	Lost       []string    // committed, never arrived
	Phantom    []string    // arrived, never committed
	Inverted   []string    // arrived before an earlier message of their key
	Duplicates []Duplicate // arrivals after the first
}

// Duplicate is a message that arrived again.
type Duplicate struct{ First, Again Delivery }

// Clean reports whether nothing was lost, invented or reordered.
func (v Verdict) Clean() bool { return len(v.Lost)+len(v.Phantom)+len(v.Inverted) == 0 }

// String returns the counts, and an example of each violation.
func (v Verdict) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "committed=%d delivered=%d lost=%d phantom=%d inverted=%d duplicates=%d",
		v.Committed, v.Delivered, len(v.Lost), len(v.Phantom), len(v.Inverted), len(v.Duplicates))
	for _, examples := range [][]string{v.Lost, v.Phantom, v.Inverted} {
		if len(examples) > 0 {
			fmt.Fprintf(&b, "\n  %s", examples[0])
		}
	}
	return b.String()
}

// Check compares what was committed with what arrived, in order of arrival.
func Check(ctx context.Context, pool *pgxpool.Pool, cfg postgres.Config, arrived []Delivery) (Verdict, error) {
	truth, err := facts(ctx, pool, cfg)
	if err != nil {
		return Verdict{}, err
	}
	return Compare(truth, arrived), nil
}

// Compare compares what arrived, in order of arrival, with what was committed.
func Compare(committed []Fact, arrived []Delivery) Verdict {
	v := Verdict{Committed: len(committed)}
	truth := make(map[postrider.ID]Fact, len(committed))
	for _, f := range committed {
		truth[f.ID] = f
	}
	first := make(map[postrider.ID]Delivery, len(arrived))
	next := map[string]int64{}
	for _, d := range arrived {
		if earlier, ok := first[d.ID]; ok {
			v.Duplicates = append(v.Duplicates, Duplicate{earlier, d})
			continue
		}
		first[d.ID] = d
		f, ok := truth[d.ID]
		if !ok || f.Key != d.Key || f.N != d.N {
			v.Phantom = append(v.Phantom, fmt.Sprintf("phantom: %+v, committed was %+v", d, f))
			continue
		}
		if d.N <= next[d.Key] {
			v.Inverted = append(v.Inverted, fmt.Sprintf("inverted: %s %d arrived after %d", d.Key, d.N, next[d.Key]))
		}
		next[d.Key] = max(next[d.Key], d.N)
	}
	v.Delivered = len(first) - len(v.Phantom)
	for id, f := range truth {
		if _, ok := first[id]; !ok {
			v.Lost = append(v.Lost, fmt.Sprintf("lost: %s %d (%s)", f.Key, f.N, id))
		}
	}
	return v
}

func facts(ctx context.Context, pool *pgxpool.Pool, cfg postgres.Config) ([]Fact, error) {
	rows, err := pool.Query(ctx, "SELECT id, key, n FROM "+cfg.Schema+".facts", pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	var truth []Fact
	var id [16]byte
	var f Fact
	_, err = pgx.ForEachRow(rows, []any{&id, &f.Key, &f.N}, func() error {
		f.ID = id
		truth = append(truth, f)
		return nil
	})
	return truth, err
}

// Count returns how many messages have been committed so far.
func Count(ctx context.Context, pool *pgxpool.Pool, cfg postgres.Config) (n int64, err error) {
	err = pool.QueryRow(ctx, "SELECT count(*) FROM "+cfg.Schema+".facts", pgx.QueryExecModeExec).Scan(&n)
	return n, err
}
