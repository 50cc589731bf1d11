package classic

import (
	"context"
	"database/sql"
	"maps"
	"slices"

	"github.com/postrider/postrider"
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
			s.sql(", ")
		}
		s.sql("(").word(key).sql(", ").text(claim).sql(", {now})")
	}
	scan := func(scan func(...any) error) error {
		var key string
		err := scan(&key)
		claimed[key] = true
		return err
	}
	if o.cfg.Dialect == PostgreSQL {
		s.sql(" ON CONFLICT (dedup_key) DO UPDATE SET claim = excluded.claim, at = excluded.at WHERE {dedup}.at < ").
			later("{now}", -o.cfg.DedupWindow)
		return s.sql(" RETURNING dedup_key").each(ctx, tx, scan)
	}
	old := func() { s.sql("at < ").later("{now}", -o.cfg.DedupWindow) }
	s.sql(" ON DUPLICATE KEY UPDATE claim = IF(")
	old()
	s.sql(", VALUES(claim), claim), at = IF(")
	old()
	s.sql(", VALUES(at), at)")
	if _, err := s.exec(ctx, tx); err != nil {
		return err
	}
	// It locks, because in the caller's transaction a plain read may see what was there before. Of a small table the server would rather
	// lock all rows, also those of transactions that are under way.
	return o.cfg.stmt("SELECT dedup_key FROM {dedup} FORCE INDEX (PRIMARY) WHERE ").words("dedup_key", keys).sql(" AND claim = ").text(claim).
		sql(" FOR UPDATE").each(ctx, tx, scan)
}
