package memory

import "time"

// claim is a dedup key that was enqueued.
type claim struct {
	at time.Time
	tx *Tx // that can give it back; nil if none can
}

// claim leaves out the messages whose dedup key is taken, and takes the keys of the others. The caller holds the lock.
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

// free gives back the keys of a transaction, except those that have gone to another since. The caller holds the lock.
func (s *DB) free(tx *Tx) {
	for _, key := range tx.keys {
		if s.keys[key].tx == tx {
			delete(s.keys, key)
		}
	}
}
