package table

import (
	"context"
	"database/sql"
	"fmt"
	"hash/crc32"
	"strconv"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// canaryKey is the dedup key by which members agree who sends the next ones.
const canaryKey = feeds.CanaryType

// Canary implements [feeds.Canary], in the table of our own. Into a table that was adopted only the application writes.
func (s *feedStore) Canary(ctx context.Context, within time.Duration) error {
	if !s.cfg.Layout.native {
		return fmt.Errorf("table: canary in table %s, which was adopted: %w", s.cfg.Layout.Table, postrider.ErrUnsupported)
	}
	cfg := s.cfg
	cfg.DedupWindow = within
	outbox := &outbox{cfg}
	err := s.do(ctx, func(tx *sql.Tx) error {
		claimed := make(map[string]bool)
		if err := outbox.claimKeys(ctx, tx, []string{canaryKey}, claimed); err != nil || !claimed[canaryKey] {
			return err
		}
		keys, err := s.canaryKeys(ctx, tx)
		if err != nil {
			return err
		}
		var msgs []postrider.Message
		for _, key := range keys {
			m := postrider.Event(feeds.CanaryType, postrider.Aggregate{}, []byte{})
			m.Key = key
			msgs = append(msgs, m)
		}
		return outbox.insert(ctx, tx, msgs)
	})
	if err != nil {
		return fmt.Errorf("table: canary: %w", err)
	}
	return nil
}

// canaryKeys returns a key of each shard.
func (s *feedStore) canaryKeys(ctx context.Context, q sqltext.Querier) (map[int]string, error) {
	const candidates = 200
	name := func(i int) string { return canaryKey + "/" + strconv.Itoa(i) }
	keys := make(map[int]string)
	if s.cfg.Dialect == sqltext.MySQL {
		for i := range candidates {
			keys[int(crc32.ChecksumIEEE([]byte(name(i)))%nativeShards)] = name(i)
		}
		return keys, nil
	}
	err := s.cfg.stmt(`SELECT i, CAST((hashtextextended((`).Arg(canaryKey+"/").SQL(` || CAST(i AS text)) COLLATE "C", 0) & 9223372036854775807) % `,
		strconv.Itoa(nativeShards), " AS integer) FROM generate_series(0, ", strconv.Itoa(candidates-1), ") i").
		Each(ctx, q, func(scan func(...any) error) error {
			var i, shard int
			err := scan(&i, &shard)
			keys[shard] = name(i)
			return err
		})
	return keys, err
}
