package trial

import (
	"slices"
	"testing"
	"time"
)

func TestPayload(t *testing.T) {
	p := newPayload(1234567890, 42, 99)
	if len(p) != payloadSize || !slices.Equal(p[:len(payloadHead)], []byte(payloadHead)) {
		t.Fatalf("%d bytes: %s", len(p), p)
	}
	number, key, seq, ok := readPayload(p)
	if !ok || number != 1234567890 || key != 42 || seq != 99 {
		t.Errorf("read back %d, %d, %d, %v", number, key, seq, ok)
	}
	for _, other := range []string{"", "{}", payloadHead, string(p[:payloadSize-1]), "x" + string(p[1:])} {
		if _, _, _, ok := readPayload([]byte(other)); ok {
			t.Errorf("%q is no payload of ours", other)
		}
	}
}

// TestBook plants each violation once, and checks that it is detected.
func TestBook(t *testing.T) {
	b := newBook()
	var numbers []int64
	for range 8 {
		numbers = append(numbers, b.draw())
	}
	for _, n := range numbers[:6] { // 6 and 7 are rolled back
		b.commit(n)
	}
	arrive := func(number, key, seq int64) { b.receive(newPayload(number, key, seq)) }
	arrive(0, 1, 1)
	arrive(2, 1, 3)
	arrive(1, 1, 2) // overtaken
	arrive(1, 1, 2) // a duplicate, which is not overtaken again
	arrive(3, 2, 1)
	arrive(4, 2, 2)
	arrive(6, 2, 3) // of a transaction that was rolled back
	b.receive([]byte("canary"))

	lost, phantoms := b.check()
	if b.arrived.Load() != 6 || b.inversions.Load() != 1 || b.duplicates.Load() != 1 || lost != 1 || phantoms != 1 {
		t.Errorf("%d arrived, %d inverted, %d twice, %d lost, %d phantoms", b.arrived.Load(), b.inversions.Load(), b.duplicates.Load(), lost, phantoms)
	}
	if times, waiting := b.latencies(0, 8); len(times) != 6 || waiting != 1 {
		t.Errorf("%d latencies, %d waiting", len(times), waiting)
	}
	began := time.Now()
	if err := b.await(t.Context(), 100, began.Add(time.Minute), 20*time.Millisecond); err != nil || time.Since(began) > 30*time.Second {
		t.Errorf("waited %v for what does not come, %v", time.Since(began), err)
	}
}
