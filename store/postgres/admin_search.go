package postgres

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

const (
	searchFor  = 100 * time.Millisecond // time limit of the search for one page
	searchStep = 20_000                 // sequence numbers in the first step
	searchTick = 25 * time.Millisecond  // after a step that takes longer, the next one is not larger
	timeSlack  = time.Minute            // how far sequence numbers and times may be out of order
)

// search walks through the log in steps, from the newest messages down, within a time limit. The
// part from bottom up to, but not including, top remains to be searched.
type search struct {
	tx          pgx.Tx
	cfg         Config
	end         int64 // of the log
	bottom, top int64
}

// newSearch returns a search of the part of the log that can match a filter, before a sequence
// number if that is not 0.
func (d *Admin) newSearch(ctx context.Context, tx pgx.Tx, feed string, filter *admin.Filter, before int64) (*search, error) {
	s := &search{tx: tx, cfg: d.cfg, bottom: 1}
	// Without these settings the planner reads a whole slot instead of a few places of an index.
	_, err := tx.Exec(ctx, `SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; SET LOCAL enable_hashjoin = off;
		SET LOCAL enable_mergejoin = off`, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		return nil, err
	}
	err = tx.QueryRow(ctx, d.cfg.in("SELECT last_value + 1 FROM @schema@.message_seq"), pgx.QueryExecModeExec).Scan(&s.end)
	if err != nil {
		return nil, err
	}
	s.top = s.end
	if before > 0 {
		s.top = min(s.top, before)
	}
	if !filter.Since.IsZero() {
		low, _, err := s.place(ctx, filter.Since.Add(-timeSlack))
		if err != nil {
			return nil, err
		}
		s.bottom = max(s.bottom, low)
	}
	if !filter.Until.IsZero() {
		_, high, err := s.place(ctx, filter.Until.Add(timeSlack))
		if err != nil {
			return nil, err
		}
		s.top = min(s.top, high)
	}
	if len(filter.Statuses) == 1 && filter.Statuses[0] == feeds.StatusPending {
		first, err := s.pending(ctx, feed)
		if err != nil {
			return nil, err
		}
		s.bottom = max(s.bottom, first)
	}
	if !filter.ID.IsZero() {
		seq, err := s.locate(ctx, filter.ID)
		if err != nil {
			return nil, err
		}
		if seq > 0 {
			s.bottom, s.top = max(s.bottom, seq), min(s.top, seq+1)
		}
	}
	return s, nil
}

// pending returns the first sequence number that the feed may not have settled.
func (s *search) pending(ctx context.Context, feed string) (first int64, err error) {
	err = s.tx.QueryRow(ctx, s.cfg.in("SELECT coalesce(min(c.passed) + 1, $2) FROM @schema@.cursors c WHERE c.feed = $1"),
		pgx.QueryExecModeExec, feed, s.end).Scan(&first)
	return first, err
}

// place returns the sequence numbers of a time: the log had all messages before low then, and none
// from high on.
func (s *search) place(ctx context.Context, at time.Time) (low, high int64, err error) {
	err = s.tx.QueryRow(ctx, s.cfg.in("SELECT coalesce(low, 1), coalesce(high, $2) FROM @schema@.place_at($1)"), pgx.QueryExecModeExec,
		at, int64(math.MaxInt64)).Scan(&low, &high)
	return low, high, err
}

// time returns when the first message at or after a sequence number was enqueued.
func (s *search) time(ctx context.Context, from int64) (time.Time, error) {
	var at time.Time
	err := s.tx.QueryRow(ctx, s.cfg.in(`SELECT m.created_at FROM @schema@.messages m WHERE m.seq >= $1 ORDER BY m.seq LIMIT 1`), pgx.QueryExecModeExec, from).Scan(&at)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return at.UTC(), err
}

// run calls look with one part after another, until look is done, nothing is left, or time is up.
// The log has gaps of any size, so the parts grow quickly where there is little to see.
func (s *search) run(look func(from, to int64) (done bool, err error)) error {
	step := int64(searchStep)
	for start := time.Now(); s.top > s.bottom && time.Since(start) < searchFor; {
		from := max(s.bottom, s.top-step)
		began := time.Now()
		done, err := look(from, s.top)
		if err != nil || done {
			return err
		}
		s.top = from
		switch took := time.Since(began); {
		case took < searchTick:
			step *= 2
		case took > 3*searchTick:
			step = max(step/2, 1000)
		}
	}
	return nil
}

// locate returns the sequence number of a message, or 0 if it must be searched for. It is fast for
// deferred messages, and for IDs that contain a time, because messages are mostly enqueued soon
// after their ID is created.
func (s *search) locate(ctx context.Context, id postrider.ID) (seq int64, err error) {
	err = s.tx.QueryRow(ctx, s.cfg.in(`SELECT m.seq FROM @schema@.deferred d JOIN @schema@.messages m ON m.seq = d.seq
		WHERE d.id = $1 AND m.id = $1 LIMIT 1`), pgx.QueryExecModeExec, id.String()).Scan(&seq)
	if !errors.Is(err, pgx.ErrNoRows) {
		return seq, err
	}
	made := id.Time()
	if made.IsZero() {
		return 0, nil
	}
	// Start with the most likely times, then allow for clock skew and long transactions.
	for _, part := range [][2]time.Duration{{-time.Second, 5 * time.Second}, {5 * time.Second, 10 * time.Minute}, {-time.Minute, -time.Second}} {
		low, _, err := s.place(ctx, made.Add(part[0]))
		if err != nil {
			return 0, err
		}
		_, high, err := s.place(ctx, made.Add(part[1]))
		if err != nil {
			return 0, err
		}
		within := search{s.tx, s.cfg, s.end, low, min(high, s.end)}
		err = within.run(func(from, to int64) (bool, error) {
			var err error
			seq, err = s.byID(ctx, id, from, to)
			return seq > 0, err
		})
		if err != nil || seq > 0 {
			return seq, err
		}
	}
	return 0, nil
}

// byID returns the sequence number of a message in a part of the log, or 0.
func (s *search) byID(ctx context.Context, id postrider.ID, from, to int64) (seq int64, err error) {
	err = s.tx.QueryRow(ctx, s.cfg.in(`SELECT m.seq FROM @schema@.messages m WHERE m.seq >= $1 AND m.seq < $2 AND m.id = $3 ORDER BY m.seq LIMIT 1`),
		pgx.QueryExecModeExec, from, to, id.String()).Scan(&seq)
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	return seq, err
}
