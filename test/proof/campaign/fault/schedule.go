package fault

import (
	"math/rand/v2"
	"slices"
	"time"
)

// AtOnce is the maximum number of concurrent faults.
const AtOnce = 3

// Plan is the input of a schedule.
type Plan struct {
	Seed   int64
	Length time.Duration
	Faults int
	Kinds  []Kind  // the possible ones
	Quiet  float64 // share of the time without any fault; usually 0.2
}

// Planned is a fault of a schedule.
type Planned struct {
	Number int // from 1
	Kind   Kind
	At     time.Duration // after the start of the run
	For    time.Duration // from the end of Begin to Heal
	Seed   uint64        // for Begin
}

// Random returns the random source for Begin.
func (p Planned) Random() *rand.Rand { return rand.New(rand.NewPCG(p.Seed, 0)) }

// end returns the planned end.
func (p Planned) end() time.Duration { return p.At + p.For + p.Kind.Takes }

// inRound is the number of faults between two quiet periods.
const inRound = 8

// Schedule draws faults for a plan. The same plan gives the same schedule. Every kind comes once
// before any comes twice; after that they come in proportion to their weights. The schedule has
// fewer faults than requested if they do not fit into the time.
func Schedule(p Plan) []Planned {
	if len(p.Kinds) == 0 || p.Faults <= 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(uint64(p.Seed), 1))
	deck := newDeck(p.Kinds, random)
	rounds := max(1, p.Faults/inRound)
	length := p.Length / time.Duration(rounds)
	var all []Planned
	for round := range rounds {
		wanted := p.Faults*(round+1)/rounds - len(all)
		begin := time.Duration(round) * length
		busy := begin + time.Duration(float64(length)*(1-p.Quiet))
		all = append(all, fill(begin, busy, wanted, deck, random)...)
	}
	slices.SortStableFunc(all, func(a, b Planned) int { return int(a.At - b.At) })
	for i := range all {
		all[i].Number, all[i].Seed = i+1, random.Uint64()
	}
	return all
}

// fill places faults between two times. Those that do not fit go back to the deck for a later
// round.
func fill(begin, end time.Duration, wanted int, deck *deck, random *rand.Rand) []Planned {
	const kindsTried, placesTried = 40, 60
	var placed []Planned
	var back []Kind
	for range kindsTried + wanted {
		if len(placed) >= wanted {
			break
		}
		kind := deck.draw()
		fits := false
		for range placesTried {
			f := Planned{Kind: kind, For: between(random, kind.Shortest, kind.Longest)}
			room := end - begin - f.For - kind.Takes
			if room < 0 {
				continue
			}
			f.At = begin + between(random, 0, room)
			if fits = goesWith(f, placed); fits {
				placed = append(placed, f)
				break
			}
		}
		if !fits {
			back = append(back, kind)
		}
	}
	deck.put(back)
	return placed
}

func between(random *rand.Rand, low, high time.Duration) time.Duration {
	if high <= low {
		return low
	}
	return low + time.Duration(random.Int64N(int64(high-low)))
}

// goesWith reports whether a fault can be added: no concurrent fault excludes it, and the limit is
// not exceeded.
func goesWith(f Planned, placed []Planned) bool {
	var edges []time.Duration
	for _, other := range placed {
		if other.At >= f.end() || f.At >= other.end() {
			continue
		}
		if f.Kind.Excludes(other.Kind) || f.Kind.Name == other.Kind.Name {
			return false
		}
		edges = append(edges, max(f.At, other.At))
	}
	// The maximum is reached when one of them begins.
	for _, at := range edges {
		n := 1
		for _, other := range placed {
			if other.At <= at && at < other.end() {
				n++
			}
		}
		if n > AtOnce {
			return false
		}
	}
	return true
}

// deck deals kinds: first each once, then according to their weights.
type deck struct {
	kinds  []Kind
	random *rand.Rand
	cards  []Kind
}

func newDeck(kinds []Kind, random *rand.Rand) *deck {
	d := &deck{kinds: kinds, random: random, cards: slices.Clone(kinds)}
	d.shuffle(d.cards)
	return d
}

func (d *deck) shuffle(cards []Kind) {
	d.random.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
}

func (d *deck) draw() Kind {
	if len(d.cards) == 0 {
		for _, k := range d.kinds {
			for range max(1, k.Weight) {
				d.cards = append(d.cards, k)
			}
		}
		d.shuffle(d.cards)
	}
	top := d.cards[0]
	d.cards = d.cards[1:]
	return top
}

// put puts kinds on top of the deck.
func (d *deck) put(kinds []Kind) { d.cards = append(slices.Clone(kinds), d.cards...) }
