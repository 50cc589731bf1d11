package table

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// claim claims the dedup keys of messages, and returns the indexes of those whose key is taken. Another transaction that has
// claimed one is waited for.
func (o *outbox) claim(ctx context.Context, tx *sql.Tx, msgs []postrider.Message) (repeats []int, err error) {
	first := make(map[string]int) // where each key occurs first
	for i := range msgs {
		key := msgs[i].DedupKey
		if _, seen := first[key]; key != "" && !seen {
			first[key] = i
		}
	}
	if len(first) == 0 {
		return nil, nil
	}
	keys := slices.Sorted(maps.Keys(first)) // in one order, so that nobody waits in a circle
	claimed := make(map[string]bool)
	for part := range slices.Chunk(keys, maxRows) {
		if err := o.claimKeys(ctx, tx, part, claimed); err != nil {
			return nil, err
		}
	}
	for i := range msgs {
		if key := msgs[i].DedupKey; key != "" && (first[key] != i || !claimed[key]) {
			repeats = append(repeats, i)
		}
	}
	return repeats, nil
}

// claimKeys adds those of the keys that are now the caller's.
func (o *outbox) claimKeys(ctx context.Context, tx *sql.Tx, keys []string, claimed map[string]bool) error {
	claim := postrider.NewID().String()
	s := o.cfg.stmt("INSERT INTO {dedup} (dedup_key, claim, at) VALUES ")
	for i, key := range keys {
		if i > 0 {
			s.SQL(", ")
		}
		s.SQL("(").Word(key).SQL(", ").Text(claim).SQL(", {now})")
	}
	scan := func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		claimed[key] = true
		return err
	}
	if o.cfg.Dialect == sqltext.PostgreSQL {
		s.SQL(" ON CONFLICT (dedup_key) DO UPDATE SET claim = excluded.claim, at = excluded.at WHERE {dedup}.at < ").
			Later("{now}", -o.cfg.DedupWindow)
		return s.SQL(" RETURNING dedup_key").Each(ctx, tx, scan)
	}
	old := func() { s.SQL("at < ").Later("{now}", -o.cfg.DedupWindow) }
	s.SQL(" ON DUPLICATE KEY UPDATE claim = IF(")
	old()
	s.SQL(", VALUES(claim), claim), at = IF(")
	old()
	s.SQL(", VALUES(at), at)")
	if _, err := s.Exec(ctx, tx); err != nil {
		return err
	}
	// It locks, because in the caller's transaction a plain read may see what was there before. Of a small table the server would rather
	// lock all rows, also those of transactions that are under way.
	return o.cfg.stmt("SELECT dedup_key FROM {dedup} FORCE INDEX (PRIMARY) WHERE ").Words("dedup_key", keys).SQL(" AND claim = ").Text(claim).
		SQL(" FOR UPDATE").Each(ctx, tx, scan)
}
