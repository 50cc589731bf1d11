package oracle

import (
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// ledger is what was committed: the truth that everything else is compared with.
type ledger struct {
	seed         maphash.Seed
	destinations map[string]map[string]*key
	events       int64
	poison       int64
	keys         int
	dead         map[string]*undelivered
}

// key has all messages of one destination and key. Message n has index n-1.
type key struct {
	ids, sums []uint64
	unordered bool                // the messages of no key
	beside    map[int64]time.Time // when messages beside a flood of another tenant were written
	poison    bits
	dead      bits             // given up by the product: dead or discarded
	late      map[int64]intent // read before earlier ones
	byID      map[uint64]int64 // numbers of messages that do not contain their number

	received bits
	order    order // of first receipts
	replay   replay
	consumed []consumed // by consumer
}

type intent struct {
	id, sum                  uint64
	poison, dead, unnumbered bool
}

// undelivered is a message that was not delivered, and whether the ledger has it.
type undelivered struct {
	record.Dead
	known bool
}

// readLedger reads the undelivered messages, and then what was committed. Whole is false if the
// ledger was cut short.
func readLedger(r *record.Reader, f *faults) (l *ledger, whole bool, err error) {
	l = &ledger{seed: maphash.MakeSeed(), destinations: map[string]map[string]*key{}, dead: map[string]*undelivered{}}
	for d, err := range r.Dead() {
		if errors.Is(err, record.ErrTruncated) {
			break
		}
		if err != nil {
			return nil, false, err
		}
		l.dead[d.ID] = &undelivered{Dead: d}
	}
	whole = true
	for i, err := range r.Intents() {
		if errors.Is(err, record.ErrTruncated) {
			whole = false
			break
		}
		if err != nil {
			return nil, false, err
		}
		if err := l.add(i); err != nil {
			return nil, false, err
		}
		if f.floods(i) {
			l.destinations[i.Destination][i.Key].written(i)
		}
	}
	if whole {
		err = l.dense()
	}
	return l, whole, err
}

func (l *ledger) add(i record.Intent) error {
	keys := l.destinations[i.Destination]
	if keys == nil {
		keys = map[string]*key{}
		l.destinations[i.Destination] = keys
	}
	k := keys[i.Key]
	if k == nil {
		k = &key{late: map[int64]intent{}, unordered: i.Unordered}
		keys[i.Key] = k
		l.keys++
	}
	entry := intent{id: l.hash(i.ID), sum: i.Sum, poison: i.Poison, unnumbered: i.Unnumbered}
	if u := l.dead[i.ID]; u != nil {
		u.known = true
		entry.dead = u.State == record.StateDead || u.State == record.StateDiscarded
	}
	l.events++
	if i.Poison {
		l.poison++
	}
	if _, twice := k.late[i.Seq]; twice || i.Seq <= int64(len(k.ids)) {
		return fmt.Errorf("the ledger has %s %s %d twice", i.Destination, i.Key, i.Seq)
	}
	k.late[i.Seq] = entry
	for {
		next, ok := k.late[int64(len(k.ids))+1]
		if !ok {
			return nil
		}
		delete(k.late, int64(len(k.ids))+1)
		k.append(next)
	}
}

// size returns the number of messages of a destination.
func (l *ledger) size(destination string) (n int64) {
	for _, k := range l.destinations[destination] {
		n += int64(len(k.ids))
	}
	return n
}

func (k *key) written(i record.Intent) {
	if k.beside == nil {
		k.beside = map[int64]time.Time{}
	}
	k.beside[i.Seq] = i.At
}

func (k *key) append(i intent) {
	place := len(k.ids)
	k.ids, k.sums = append(k.ids, i.id), append(k.sums, i.sum)
	if i.poison {
		k.poison.set(place)
	}
	if i.dead {
		k.dead.set(place)
	}
	if i.unnumbered {
		if k.byID == nil {
			k.byID = map[uint64]int64{}
		}
		k.byID[i.id] = int64(place) + 1
	}
}

// dense checks that numbers have no gaps; otherwise a gap among receipts would mean nothing.
func (l *ledger) dense() error {
	for name, k := range l.each() {
		if len(k.late) > 0 {
			seqs := slices.Sorted(maps.Keys(k.late))
			return fmt.Errorf("the ledger has a hole: %s has %d and not %d", name, seqs[0], len(k.ids)+1)
		}
		k.late = nil
	}
	return nil
}

// keyName is a destination and a key.
type keyName struct{ destination, key string }

func (n keyName) String() string { return n.destination + " " + n.key }

// each yields all keys, sorted by name.
func (l *ledger) each() iter.Seq2[keyName, *key] {
	return func(yield func(keyName, *key) bool) {
		for _, destination := range slices.Sorted(maps.Keys(l.destinations)) {
			keys := l.destinations[destination]
			for _, name := range slices.Sorted(maps.Keys(keys)) {
				if !yield(keyName{destination, name}, keys[name]) {
					return
				}
			}
		}
	}
}

// find returns the key and the number of a message, or nil if it was not committed, even if another
// ID was committed with its number: then the transaction was rolled back, and the number assigned
// again.
func (l *ledger) find(m record.Message) (*key, int64) {
	k := l.destinations[m.Destination][m.Key]
	if k == nil {
		return nil, 0
	}
	id := l.hash(m.ID)
	seq := m.Seq
	if seq == 0 {
		seq = k.byID[id]
	}
	if seq < 1 || seq > int64(len(k.ids)) || k.ids[seq-1] != id {
		return nil, 0
	}
	return k, seq
}

func (l *ledger) hash(id string) uint64 { return maphash.String(l.seed, id) }
