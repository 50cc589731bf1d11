package classic

import "testing"

// TestSettledDuringARead: a read that has seen a row wait must leave it out, though the row is settled before the read ends.
func TestSettledDuringARead(t *testing.T) {
	l := newLane(1, 0)
	l.hand([]record{{rowID: "1"}, {rowID: "2"}})
	l.refresh() // a read begins, and sees both
	known := l.known
	l.advance(l.base + 1)
	if !known["1"] || !known["2"] {
		t.Errorf("the read would hand out again all but %v", known)
	}
	l.refresh() // the next one cannot see the first any more, unless an operator has put it back
	if known["1"] || !known["2"] || len(l.handed) != 1 || l.handed[0].rowID != "2" {
		t.Errorf("left are %v and %+v", known, l.handed)
	}
}
