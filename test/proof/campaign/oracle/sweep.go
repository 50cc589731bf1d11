package oracle

// remains is the result of the final pass over everything committed.
type remains struct {
	lost        evidence // I1
	undone      evidence // received, but a consumer did nothing
	accepted    int64    // poison that was received
	deadLetters int64    // poison that is dead or discarded, as expected
	received    map[string]int64
	inserted    map[string]int64
}

func sweep(l *ledger, d *deeds) remains {
	found := remains{received: map[string]int64{}, inserted: map[string]int64{}}
	for name, k := range l.each() {
		destination := name.destination
		found.inserted[destination] += int64(len(k.ids))
		for place := range k.ids {
			seq := place + 1
			poison, dead := k.poison.has(place), k.dead.has(place)
			switch received := k.received.has(place); {
			case received:
				found.received[destination]++
				if poison {
					found.accepted++
				}
				found.consumers(d, k, name, place)
			case poison && dead:
				found.deadLetters++
			case poison:
				found.lost.add("%s %d is poison, and neither dead nor discarded", name, seq)
			case dead:
				found.lost.add("%s %d was not received: the product has given it up", name, seq)
			default:
				found.lost.add("%s %d was not received", name, seq)
			}
		}
	}
	return found
}

// consumers finds consumers that did not process what was received.
func (found *remains) consumers(d *deeds, k *key, name keyName, place int) {
	for number, consumer := range d.owed[name.destination] {
		if number >= len(k.consumed) || !k.consumed[number].done.has(place) {
			found.undone.add("%s did not do %s %d", consumer, name, place+1)
		}
	}
}
