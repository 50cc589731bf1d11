package postridertest

import (
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
)

// When says which messages a fault strikes. The zero value is never. Messages are counted from 1, for each fault and each
// consumer apart, in the order in which they come by; one that is sent again counts again.
type When struct {
	of     *Match
	strike func(n int, draw float64) bool
}

// Every strikes each nth message. Every(1) strikes all.
func Every(n int) When {
	return When{strike: func(i int, _ float64) bool { return n > 0 && i%n == 0 }}
}

// Nth strikes the messages with these numbers.
func Nth(numbers ...int) When {
	return When{strike: func(i int, _ float64) bool { return slices.Contains(numbers, i) }}
}

// Sometimes strikes a share of the messages, between 0 and 1. Which ones follows from the seed, from the message's key and from
// how many messages of the key have come before: it does not depend on how the keys are mixed.
func Sometimes(share float64) When {
	return When{strike: func(_ int, draw float64) bool { return draw < share }}
}

// Of strikes, and counts, only messages that match.
func (w When) Of(m Match) When {
	w.of = &m
	return w
}

// tally counts what has come by one fault.
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

// total returns how many messages have come by, and how many were struck.
func (t *tally) total() (came, struck int) {
	came, struck = t.came, t.struck
	for _, f := range t.forks {
		c, s := f.total()
		came, struck = came+c, struck+s
	}
	return came, struck
}

// strikes counts a message and decides about it.
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

// draw returns a number from 0 to 1 that depends on nothing but its arguments.
func draw(seed uint64, name, key string, n int) float64 {
	h := fnv.New64a()
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], seed)
	h.Write(b[:])
	h.Write([]byte(name + "\x00" + key + "\x00"))
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:])
	// The last bytes hardly reach the upper bits of this hash: mix them.
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11) / (1 << 53)
}
