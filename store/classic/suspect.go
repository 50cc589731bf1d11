package classic

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/postrider/postrider"
)

// Suspect implements [postrider.Deferrer].
func (f *feed) Suspect(ctx context.Context, batch *postrider.Batch, index int) (started int, err error) {
	h, err := f.handedOut(batch, index)
	if err == nil {
		err = f.owning(ctx, []int{batch.Shard}, func(tx *sql.Tx) error {
			started, err = f.start(ctx, tx, batch.Shard, h.rowID)
			return err
		})
	}
	if err != nil {
		return 0, fmt.Errorf("classic: suspect: %w", err)
	}
	return started, nil
}

// start notes that a row is about to be sent. It looks before it deletes: a search would lock what other members note.
func (f *feed) start(ctx context.Context, tx querier, shard int, rowID string) (started int, err error) {
	cfg := f.cfg()
	type note struct {
		shard int
		rowID string
	}
	var ended []note
	err = cfg.stmt("SELECT shard, row_id, member, started FROM {starts} WHERE feed = ").word(f.name).each(ctx, tx, func(scan func(...any) error) error {
		var n note
		var member string
		var times int
		err := scan(&n.shard, &n.rowID, &member, &times)
		switch {
		case n == note{shard, rowID}:
			started = times
		case member == f.id:
			ended = append(ended, n)
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, n := range ended {
		s := cfg.stmt("DELETE FROM {starts} WHERE feed = ").word(f.name).sql(" AND shard = ").number(int64(n.shard))
		if _, err := s.sql(" AND row_id = ").word(n.rowID).sql(" AND member = ").text(f.id).exec(ctx, tx); err != nil {
			return 0, err
		}
	}
	s := cfg.stmt("UPDATE {starts} SET started = started + 1, member = ").text(f.id).sql(" WHERE feed = ").word(f.name)
	s.sql(" AND shard = ").number(int64(shard)).sql(" AND row_id = ").word(rowID)
	if started == 0 {
		s = cfg.stmt("INSERT INTO {starts} (feed, shard, row_id, member, started) VALUES (").word(f.name).sql(", ").number(int64(shard))
		s.sql(", ").word(rowID).sql(", ").text(f.id).sql(", 1)")
	}
	_, err = s.exec(ctx, tx)
	return started + 1, err
}
