package oracle

// bits is a set of small numbers.
type bits []uint64

func (b bits) has(n int) bool { return n>>6 < len(b) && b[n>>6]&(1<<(n&63)) != 0 }

// set adds a number and reports whether it was already present.
func (b *bits) set(n int) bool {
	for n>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	word, bit := &(*b)[n>>6], uint64(1)<<(n&63)
	was := *word&bit != 0
	*word |= bit
	return was
}
