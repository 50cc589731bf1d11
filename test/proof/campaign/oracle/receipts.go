package oracle

import (
	"errors"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// arrivals compares the contents of one destination with the ledger.
type arrivals struct {
	destination string
	once        bool // nothing may come twice
	receipts    int64
	rereads     int64 // the same entry again
	reused      int64 // another message at a known position
	truncated   bool

	phantom     evidence // I2
	inverted    evidence // I3
	zombies     int64    // inversions explained by a resumed relay
	overlaps    evidence // I3
	excused     int64    // overlaps explained by a fault
	unexplained evidence // I6
	changed     evidence // I7

	waits      waits // I9
	duplicates int64
	restored   int64 // of these, after a restore
	asked      int64 // not among these: operators asked for them
	byFault    map[*span]int64
	latest     time.Duration // between a heal and the last duplicate that it explains
}

// readReceipts reads the receipts of a destination. Several destinations can be read concurrently:
// they share no key.
func readReceipts(r *record.Reader, destination string, once bool, l *ledger, f *faults) (*arrivals, error) {
	a := &arrivals{destination: destination, once: once, byFault: map[*span]int64{}}
	positions := map[int]int64{}
	for x, err := range r.Receipts(destination) {
		if errors.Is(err, record.ErrTruncated) {
			a.truncated = true
			break
		}
		if err != nil {
			return nil, err
		}
		last, known := positions[x.Partition]
		reread := known && x.Offset <= last
		if !reread {
			positions[x.Partition] = x.Offset
		}
		k, seq := l.find(x.Message)
		switch {
		case k == nil:
			a.receipts++
			a.phantom.add("%s %s %d %s was received at %s and never committed", destination, x.Key, x.Seq, x.ID, clock(x.At))
		case reread && k.received.has(int(seq-1)):
			a.rereads++
		default:
			if reread {
				a.reused++
			}
			a.take(x, k, seq, f)
		}
	}
	for name, k := range l.destinations[destination] {
		a.end(k.replay.overlap, name, f)
	}
	return a, nil
}

func (a *arrivals) take(x record.Receipt, k *key, seq int64, f *faults) {
	a.receipts++
	if x.Sum != k.sums[seq-1] {
		a.changed.add("%s %s %d %s has the sum %016x, not %016x", a.destination, x.Key, seq, x.ID, x.Sum, k.sums[seq-1])
	}
	if k.received.set(int(seq - 1)) {
		if s := f.asked(x.At, a.destination); s != nil {
			s.again--
			a.asked++
			return
		}
		a.duplicate(x, seq, f)
		if !k.unordered {
			a.end(k.replay.again(seq, k.order.max, x.At), x.Key, f)
		}
		return
	}
	if written, ok := k.beside[seq]; ok {
		a.waits.add(x, written, f)
	}
	if k.unordered {
		return
	}
	highest := k.order.max
	if !k.order.first(seq) {
		k.replay.first()
		return
	}
	if f.zombie(x.At) != nil {
		a.zombies++
	} else {
		a.inverted.add("%s %s: %d came at %s, after %d", a.destination, x.Key, seq, clock(x.At), highest)
	}
}

// restoreFault is the fault after which messages come again everywhere: the database has forgotten
// that they were sent.
const restoreFault = "restore"

func (a *arrivals) duplicate(x record.Receipt, seq int64, f *faults) {
	a.duplicates++
	s := f.explains(x.At, a.destination)
	a.byFault[s]++
	if s == nil {
		a.unexplained.add("%s %s %d came again at %s%s", a.destination, x.Key, seq, clock(x.At), f.stopped(x.At))
		return
	}
	if s.Kind == restoreFault {
		a.restored++
	} else if a.once {
		a.unexplained.add("%s %s %d came again at %s, where nothing may", a.destination, x.Key, seq, clock(x.At))
	}
	if !s.heal.IsZero() {
		a.latest = max(a.latest, x.At.Sub(s.heal))
	}
}

// end checks two concurrent series of duplicates of one key.
func (a *arrivals) end(o overlap, key string, f *faults) {
	switch {
	case o.count == 0:
	case f.zombie(o.at) != nil, o.count <= fewOverlaps && f.explains(o.at, a.destination) != nil:
		a.excused++
	default:
		a.overlaps.add("%s %s: until %s two relays sent at once, which shows %d times", a.destination, key, clock(o.at), o.count)
	}
}

func clock(at time.Time) string { return at.UTC().Format("15:04:05.000") }
