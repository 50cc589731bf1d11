package shard

import (
	"cmp"
	"math/bits"
	"slices"
)

// maxOvertakers is the maximum number of messages in a call that overtake others by priority.
const maxOvertakers = 64

// overtake appends up to n messages with a priority, the highest first. Within a key no message
// overtakes another.
func (w *window) overtake(picked []int, n int) []int {
	w.urgent = slices.DeleteFunc(w.urgent, func(pos int) bool { return pos < w.first || !w.order.isOpen(pos) })
	if len(w.urgent) == 0 {
		return picked
	}
	for _, pos := range w.urgent {
		if len(picked) == maxOvertakers {
			break
		}
		if w.order.isReady(pos) && w.order.isHead(pos, w.first) {
			picked = append(picked, pos)
		}
	}
	slices.SortStableFunc(picked, func(a, b int) int { return cmp.Compare(w.message(b).Priority, w.message(a).Priority) })
	return picked[:min(len(picked), n)]
}

// isHead reports whether no earlier message of the key, from first on, is open.
func (o *order) isHead(pos, first int) bool {
	key := o.at(pos).key
	if key == 0 {
		return true
	}
	for p := first; p < pos; p++ {
		if o.at(p).key == key && o.isOpen(p) {
			return false
		}
	}
	return true
}

// chooseOthers is like choose for a call that already has messages. It skips these and returns at
// most n messages in total.
func (o *order) chooseOthers(picked []int, n, first, end int) []int {
	ahead := len(picked)
	for word := first >> 6; word<<6 < end && len(picked) < n; word++ {
		for set := o.ready[word&(len(o.ready)-1)]; set != 0 && len(picked) < n; set &= set - 1 {
			pos := word<<6 + bits.TrailingZeros64(set)
			if pos >= end {
				return picked
			}
			if !slices.Contains(picked[:ahead], pos) {
				picked = append(picked, pos)
			}
		}
	}
	return picked
}
