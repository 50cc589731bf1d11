package table

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/table/internal/sqltext"
)

// maxNames is how many names of a shard one statement finds; MySQL does not go a thousand steps.
const maxNames = 500

// nameHash stands for a name in an index.
func nameHash(name string) string {
	sum := sha256.Sum256([]byte(storable(name)))
	return hex.EncodeToString(sum[:])
}

// heldName is a name of a shard that messages are held for.
type heldName struct {
	shard int
	hash  string
	first int64 // seq of the first message
	probe bool
	after int64 // the probe stands behind it, if there is one
}

// released returns the first messages that are held for names which are not held any more, and one for each that is to be probed.
func (f *feed) released(ctx context.Context, want feeds.DueRequest) ([]dueHead, error) {
	type name struct {
		shard int
		hash  string
	}
	held := make(map[name]feeds.HeldName)
	for _, h := range want.Held {
		held[name{h.Shard, nameHash(h.Name)}] = h
	}
	all, err := f.heldNames(ctx, want.Shards)
	if err != nil {
		return nil, err
	}
	var names []heldName
	for _, n := range all {
		h, ok := held[name{n.shard, n.hash}]
		if n.probe, n.after = h.Probe, h.After; !ok || h.Probe {
			names = append(names, n)
		}
	}
	first := func(probeA, probeB bool, a, b int64) int {
		if probeA != probeB {
			if probeA {
				return -1
			}
			return 1
		}
		return cmp.Compare(a, b)
	}
	slices.SortFunc(names, func(a, b heldName) int { return first(a.probe, b.probe, a.first, b.first) })
	names = names[:min(len(names), want.Limit)]
	var heads []dueHead
	for part := range slices.Chunk(names, 50) {
		some, err := f.heldFor(ctx, part, max(want.Limit*2/len(names), 16))
		if err != nil {
			return nil, err
		}
		heads = append(heads, some...)
	}
	slices.SortFunc(heads, func(a, b dueHead) int { return first(a.probe, b.probe, a.seq, b.seq) })
	for i := range heads {
		heads[i].rank = i
	}
	return heads, nil
}

// heldNames returns the names that messages are held for. It finds each by one descent of the index, however many messages there
// are of it.
func (f *feed) heldNames(ctx context.Context, shards []int) ([]heldName, error) {
	var names []heldName
	after := make(map[int]string)
	for len(shards) > 0 {
		next := func(s *sqltext.Stmt, shard, hash string) {
			s.SQL("(SELECT a.name_hash FROM {deferred} a WHERE a.feed = ").Word(f.name).
				SQL(" AND a.shard = ", shard, " AND a.name_hash > ", hash, " ORDER BY a.name_hash LIMIT 1)")
		}
		s := f.cfg().stmt("WITH RECURSIVE names (shard, hash, nth) AS (")
		for i, shard := range shards {
			if i > 0 {
				s.SQL(" UNION ALL ")
			}
			s.SQL("SELECT ", strconv.Itoa(shard), ", ")
			next(s, strconv.Itoa(shard), f.cfg().Dialect.WordLiteral(after[shard]))
			s.SQL(", 1")
		}
		s.SQL(" UNION ALL SELECT n.shard, ")
		next(s, "n.shard", "n.hash")
		s.SQL(", n.nth + 1 FROM names n WHERE n.hash IS NOT NULL AND n.nth < ", strconv.Itoa(maxNames), ") SELECT n.shard, n.hash, n.nth, ",
			"(SELECT a.seq FROM {deferred} a WHERE a.feed = ").Word(f.name).
			SQL(" AND a.shard = n.shard AND a.name_hash = n.hash ORDER BY a.seq LIMIT 1) FROM names n WHERE n.hash IS NOT NULL")
		shards = nil
		err := s.Each(ctx, f.store.db, func(scan func(...any) error) error {
			var n heldName
			var nth int
			var first *int64 // null when the last message of the name has just gone
			if err := scan(&n.shard, &n.hash, &nth, &first); err != nil {
				return err
			}
			if nth == maxNames {
				shards = append(shards, n.shard)
				after[n.shard] = n.hash
			}
			if first != nil {
				n.first = *first
				names = append(names, n)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// heldFor returns the first messages that are held for names, of each up to a limit, and one that is to be probed. One that is not
// the first of its key waits for another first.
func (f *feed) heldFor(ctx context.Context, names []heldName, limit int) ([]dueHead, error) {
	s := f.cfg().stmt()
	some := func(n *heldName, from int64, most int) {
		s.SQL("(SELECT ", deferredColumns(f.cfg().Dialect), " FROM {deferred} a WHERE a.feed = ").Word(f.name).SQL(" AND a.shard = ").Number(int64(n.shard))
		s.SQL(" AND a.name_hash = ").Word(n.hash).SQL(" AND a.seq > ").Number(from)
		s.SQL(" AND (a.blocking = 0 OR a.order_key IS NULL OR NOT EXISTS (SELECT 1 FROM {deferred} b WHERE b.feed = ").
			Word(f.name).SQL(" AND b.order_key = a.order_key AND b.blocking = 1 AND b.seq < a.seq)) ORDER BY a.seq LIMIT ").Number(int64(most)).SQL(")")
	}
	for i := range names {
		if i > 0 {
			s.SQL(" UNION ALL ")
		}
		if n := &names[i]; n.probe { // behind the last one, or the first of all
			some(n, n.after, 1)
			s.SQL(" UNION ALL ")
			some(n, -1, 1)
		} else {
			some(n, -1, limit)
		}
	}
	rows, err := deferredRows(ctx, f.store.db, s)
	if err != nil {
		return nil, err
	}
	type name struct {
		shard int
		hash  string
	}
	probes := make(map[name]int64)
	for _, n := range names {
		if n.probe {
			probes[name{n.shard, n.hash}] = n.after
		}
	}
	var heads []dueHead
	found := make(map[name]int) // the probe that was found, in heads
	for _, r := range rows {
		n := name{r.shard, nameHash(r.name)}
		after, probe := probes[n]
		at, twice := found[n]
		switch {
		case !probe:
			heads = append(heads, dueHead{deferredRow: r})
		case !twice:
			found[n] = len(heads)
			heads = append(heads, dueHead{deferredRow: r, probe: true})
		case r.seq > after && heads[at].seq <= after:
			heads[at].deferredRow = r
		}
	}
	return heads, nil
}
