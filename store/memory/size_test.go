package memory_test

import (
	"runtime"
	"strconv"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// TestWhatWasDeliveredIsFreed: a delivered backlog leaves nothing in memory.
func TestWhatWasDeliveredIsFreed(t *testing.T) {
	s := memory.Open(memory.Config{})
	before := heap()
	for i := range 100_000 {
		write(t, s, postrider.Event("x", postrider.Aggregate{Type: "a", ID: strconv.Itoa(i)}, nil))
	}
	f := open(t, s, "default")
	var want []feeds.Demand
	for _, shard := range balance(t, f).Shards {
		want = append(want, feeds.Demand{Shard: shard, Limit: 5000})
	}
	for {
		batches, err := f.Read(t.Context(), want)
		if err != nil {
			t.Fatal(err)
		}
		if len(batches) == 0 {
			break
		}
		var marks []feeds.Mark
		for i := range batches {
			marks = append(marks, feeds.Mark{Shard: batches[i].Shard, Batch: &batches[i], Done: len(batches[i].Messages)})
		}
		settle(t, f, marks...)
	}
	full := heap()
	if err := s.Maintain(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := heap(); after-before > (full-before)/20 {
		t.Errorf("%d KB before, %d KB with 100,000 messages, %d KB when they were delivered", before>>10, full>>10, after>>10)
	}
	runtime.KeepAlive(s)
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMaxMessages: a full store refuses messages with ClassUnavailable, not as invalid.
func TestMaxMessages(t *testing.T) {
	s := memory.Open(memory.Config{MaxMessages: 3})
	write(t, s, postrider.Event("x", postrider.Aggregate{Type: "a", ID: "1"}, nil), postrider.Event("x", postrider.Aggregate{Type: "a", ID: "2"}, nil))
	tx := s.Begin()
	if err := s.Enqueue(t.Context(), tx, postrider.Event("x", postrider.Aggregate{Type: "a", ID: "3"}, nil)); err != nil {
		t.Fatal(err)
	}
	if err := s.Enqueue(t.Context(), tx, postrider.Event("x", postrider.Aggregate{Type: "a", ID: "4"}, nil)); postrider.ClassOf(err) != postrider.ClassUnavailable {
		t.Errorf("got %v, want one that passes", err)
	}
}
