package postridertest

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
)

// When selects which messages a fault strikes. The zero value strikes none. Messages are counted
// from 1, separately for each fault and each consumer, in the order in which they arrive; a message
// that is sent again counts again.
type When struct {
	of     *Match
	strike func(n int, draw float64) bool
}

// Every strikes every nth message. Every(1) strikes all.
func Every(n int) When {
	return When{strike: func(i int, _ float64) bool { return n > 0 && i%n == 0 }}
}

// Nth strikes the messages with these numbers.
func Nth(numbers ...int) When {
	return When{strike: func(i int, _ float64) bool { return slices.Contains(numbers, i) }}
}

// Sometimes strikes a share of the messages, between 0 and 1. The selection depends on the seed, on
// the message's key, and on the number of earlier messages of that key, but not on how keys are
// interleaved.
func Sometimes(share float64) When {
	return When{strike: func(_ int, draw float64) bool { return draw < share }}
}

// Of restricts w to messages that match: only those are counted and struck.
func (w When) Of(m Match) When {
	w.of = &m
	return w
}

// tally counts the messages of one fault.
type tally struct {
	name         string
	when         When
	came, struck int
	keys         map[string]int
	forks        []*tally
}

// fork returns a tally of the same fault that counts on its own.
func (t *tally) fork() *tally {
	f := &tally{name: t.name + "#" + strconv.Itoa(len(t.forks)), when: t.when}
	t.forks = append(t.forks, f)
	return f
}

// total returns how many messages were counted, and how many were struck.
func (t *tally) total() (came, struck int) {
	came, struck = t.came, t.struck
	for _, f := range t.forks {
		c, s := f.total()
		came, struck = came+c, struck+s
	}
	return came, struck
}

// strikes counts a message and reports whether the fault strikes it.
func (t *tally) strikes(seed uint64, m *postrider.Message) bool {
	if t.when.strike == nil || t.when.of != nil && t.when.of.Mismatch(*m) != "" {
		return false
	}
	if t.keys == nil {
		t.keys = make(map[string]int)
	}
	key := m.OrderKey()
	t.came++
	t.keys[key]++
	if !t.when.strike(t.came, draw(seed, t.name, key, t.keys[key])) {
		return false
	}
	t.struck++
	return true
}

// draw returns a number from 0 to 1 that depends only on its arguments.
func draw(seed uint64, name, key string, n int) float64 {
	h := fnv.New64a()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte(name + "\x00" + key + "\x00"))
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
	// The last bytes hardly affect the upper bits of this hash, so mix them.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
