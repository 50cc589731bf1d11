package memory

import "time"

// claim is a dedup key that was enqueued.
type claim struct {
	at time.Time
	tx *Tx // the transaction that may release it; nil if none
}

// claim filters out messages whose dedup key is taken, and claims the keys of the others. The
// caller holds the lock.
func (s *DB) claim(tx *Tx, entries []entry) (fresh []entry, repeats []int) {
	for i, e := range entries {
		if e.DedupKey != "" {
			if c, taken := s.keys[e.DedupKey]; taken && e.at.Sub(c.at) < s.window {
				repeats = append(repeats, i)
				continue
			}
			s.keys[e.DedupKey] = claim{e.at, tx}
			if tx != nil {
				tx.keys = append(tx.keys, e.DedupKey)
			}
		}
		fresh = append(fresh, e)
	}
	return fresh, repeats
}

// free releases the keys of a transaction, except those that another one has claimed since. The
// caller holds the lock.
func (s *DB) free(tx *Tx) {
	for _, key := range tx.keys {
		if s.keys[key].tx == tx {
			delete(s.keys, key)
		}
	}
}
