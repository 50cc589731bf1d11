package table

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// begunRow is a row that is about to be sent.
type begunRow struct {
	shard int
	rowID string
}

// Suspect implements [feeds.Deferrer].
func (f *feed) Suspect(ctx context.Context, start feeds.Start) (started int, err error) {
	row := begunRow{shard: start.Shard}
	if start.Batch != nil {
		var h inFlight
		h, err = f.findInFlight(start.Batch, start.Index)
		row = begunRow{start.Batch.Shard, h.rowID}
	}
	if err == nil {
		err = f.owning(ctx, []int{row.shard}, func(tx *sql.Tx) error {
			if start.Batch == nil {
				if row.rowID, err = f.deferredRowID(ctx, tx, place{start.Shard, start.Seq}); err != nil {
					return err
				}
			}
			started, err = f.start(ctx, tx, row)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("table: suspect: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begun = row
	return started, nil
}

// deferredRowID returns the row of a message that was deferred.
func (f *feed) deferredRowID(ctx context.Context, tx sqltext.Querier, at place) (string, error) {
	rows, err := f.concluded(ctx, tx, []feeds.Conclusion{{Shard: at.shard, Seq: at.seq}})
	if err != nil {
		return "", err
	}
	r, ok := rows[at]
	if !ok {
		return "", fmt.Errorf("message %d of shard %d is not deferred any more", at.seq, at.shard)
	}
	return r.rowID, nil
}

// start notes that a row is about to be sent, once for each member. It looks before it deletes: a search would lock what other
// members note.
func (f *feed) start(ctx context.Context, tx sqltext.Querier, row begunRow) (started int, err error) {
	cfg := f.cfg()
	var ended []begunRow
	noted := false // by this member
	err = cfg.stmt("SELECT shard, row_id, member, started FROM {starts} WHERE feed = ").Word(f.name).Each(ctx, tx, func(scan func(...any) error) error {
		var r begunRow
		var member string
		var times int
		err := scan(&r.shard, &r.rowID, &member, &times)
		switch {
		case r == row:
			started, noted = times, member == f.id
		case member == f.id:
			ended = append(ended, r)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, r := range ended {
		if err := f.forgetStart(ctx, tx, r); err != nil {
			return 0, err
		}
	}
	if noted {
		return started, nil
	}
	s := cfg.stmt("UPDATE {starts} SET started = started + 1, member = ").Text(f.id).SQL(" WHERE feed = ").Word(f.name)
	s.SQL(" AND shard = ").Number(int64(row.shard)).SQL(" AND row_id = ").Word(row.rowID)
	if started == 0 {
		s = cfg.stmt("INSERT INTO {starts} (feed, shard, row_id, member, started) VALUES (").Word(f.name).SQL(", ").Number(int64(row.shard))
		s.SQL(", ").Word(row.rowID).SQL(", ").Text(f.id).SQL(", 1)")
	}
	_, err = s.Exec(ctx, tx)
	return started + 1, err
}

// forgetStart removes what the member has noted of a row.
func (f *feed) forgetStart(ctx context.Context, tx sqltext.Querier, row begunRow) error {
	s := f.cfg().stmt("DELETE FROM {starts} WHERE feed = ").Word(f.name).SQL(" AND shard = ").Number(int64(row.shard))
	_, err := s.SQL(" AND row_id = ").Word(row.rowID).SQL(" AND member = ").Text(f.id).Exec(ctx, tx)
	return err
}
