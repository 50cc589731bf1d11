package bench

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
)

func numbered(numbers ...int64) []postrider.Message {
	var msgs []postrider.Message
	for _, n := range numbers {
		msgs = append(msgs, postrider.Message{Payload: binary.BigEndian.AppendUint64(nil, uint64(n))})
	}
	return msgs
}

func TestBookTellsLatencies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		first, second, third := b.draw(), b.draw(), b.draw()
		b.commit(first)
		time.Sleep(3 * time.Millisecond)
		b.confirm(numbered(first, second)) // the second before its producer knows of the commit
		b.commit(second)
		time.Sleep(time.Millisecond)
		b.confirm(numbered(first)) // again: the first time counts
		b.commit(third)

		want := []int64{int64(3 * time.Millisecond), 0}
		if got := b.latencies(0, b.drawn()); !slices.Equal(got, want) {
			t.Errorf("latencies %v, want %v", got, want)
		}
		if b.delivered.Load() != 2 || b.committed.Load() != 3 || b.undelivered() != 1 {
			t.Errorf("delivered %d, committed %d, undelivered %d", b.delivered.Load(), b.committed.Load(), b.undelivered())
		}
	})
}

func TestBookIgnoresStrangers(t *testing.T) {
	b := newBook()
	b.confirm([]postrider.Message{{}, {Payload: []byte("short")}, {Payload: []byte("\xff\xff\xff\xff\xff\xff\xff\xff")}})
	if got := b.delivered.Load(); got != 0 {
		t.Errorf("%d delivered", got)
	}
}

func TestBookAwaits(t *testing.T) {
	silent := func(int64, int64) {}
	synctest.Test(t, func(t *testing.T) {
		b := newBook()
		go func() {
			time.Sleep(time.Minute / 4)
			b.confirm(numbered(1))
			time.Sleep(time.Minute / 4)
			b.confirm(numbered(2))
		}()
		start := time.Now()
		if err := b.await(t.Context(), 2, silent); err != nil || time.Since(start) > time.Minute/2+time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		// Nothing comes any more: it gives up, and the caller counts.
		start = time.Now()
		if err := b.await(t.Context(), 3, silent); err != nil || time.Since(start) < progressTimeout {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := b.await(ctx, 3, silent); err == nil {
			t.Error("no error after the end of the context")
		}
	})
}
