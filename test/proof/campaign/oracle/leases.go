package oracle

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// keptLeases is how many of the last rows of a shard are kept: rows that a crash has undone are
// recent ones.
const keptLeases = 4096

type shard struct {
	feed   string
	number int
}

// checkLeases checks the relays' ledger (I8): a row has one owner, and the next row has another
// only if the lease was released or had expired.
func checkLeases(r *record.Reader, f *faults) (Finding, error) {
	const id, name, budget = "I8", "two holders of one lease", "0"
	if !r.Has("leases") {
		return notChecked(id, name, budget, "leases.gz was not written"), nil
	}
	var found evidence
	rows, undone := int64(0), int64(0)
	seen := map[shard]map[int64]record.Lease{}
	for row, err := range r.Leases() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return Finding{}, err
		}
		rows++
		s := shard{row.Feed, row.Shard}
		if seen[s] == nil {
			seen[s] = map[int64]record.Lease{}
		}
		if old, ok := seen[s][row.N]; ok && (old.Member != row.Member || !old.At.Equal(row.At)) {
			if lostRows(f, old, row) {
				undone++
			} else {
				found.add("%s/%d row %d: %s wrote it at %s, and %s at %s",
					row.Feed, row.Shard, row.N, old.Member, clock(old.At), row.Member, clock(row.At))
			}
		}
		before, ok := seen[s][row.N-1]
		if ok && row.Member != "" && before.Member != "" && before.Member != row.Member && !before.Released && row.At.Before(before.Until) {
			found.add("%s/%d row %d: %s took it at %s, and %s had it until %s",
				row.Feed, row.Shard, row.N, row.Member, clock(row.At), before.Member, clock(before.Until))
		}
		seen[s][row.N] = row
		delete(seen[s], row.N-keptLeases)
	}
	if rows == 0 {
		return notChecked(id, name, budget, "leases.gz is empty"), nil
	}
	note := fmt.Sprintf("%d rows of %d shards", rows, len(seen))
	if undone > 0 {
		note = join(note, fmt.Sprintf("%d rows were written again after the database had lost them", undone))
	}
	return found.judge(id, name, budget, note), nil
}

// lostRows reports whether a database fault happened between two versions of a row. Relays do not
// wait for the disk, so a crash undoes their last rows.
func lostRows(f *faults, old, row record.Lease) bool {
	for _, s := range f.spans {
		if s.Touch(record.Database) && !s.At.After(row.At) && (s.heal.IsZero() || !s.heal.Add(reach).Before(old.At)) {
			return true
		}
	}
	return false
}
