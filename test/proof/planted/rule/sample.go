package rule

import (
	"cmp"
	"fmt"
	"slices"
)

// Sample returns n mutants, or all if there are fewer, by a seed. The same seed keeps its choice as
// far as the sources stay the same.
func Sample(all []Mutant, seed, n int) []Mutant {
	chosen := slices.Clone(all)
	rank := func(m Mutant) uint32 { return number(fmt.Sprintf("%d %s", seed, m.Name)) }
	slices.SortFunc(chosen, func(a, b Mutant) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.Name, b.Name))
	})
	chosen = chosen[:min(n, len(chosen))]
	Sort(chosen)
	return chosen
}
