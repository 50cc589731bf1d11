package storetest

import (
	"bytes"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// series returns n messages of one key.
func series(key string, n int) []postrider.Message {
	msgs := make([]postrider.Message, n)
	for i := range msgs {
		msgs[i] = postrider.Event("storetest.happened", postrider.Aggregate{Type: "storetest", ID: key}, i)
	}
	return msgs
}

// one returns a single message of the key.
func one(key string) postrider.Message { return series(key, 1)[0] }

func begin(t *testing.T, h Harness, msgs ...postrider.Message) Tx {
	t.Helper()
	tx := h.Begin(t)
	enqueue(t, tx, msgs...)
	return tx
}

func enqueue(t *testing.T, tx Tx, msgs ...postrider.Message) {
	t.Helper()
	if err := tx.Enqueue(t.Context(), msgs...); err != nil {
		t.Fatalf("Enqueue: %v", err)
	}
}

func commit(t *testing.T, tx Tx) {
	t.Helper()
	if err := tx.Commit(); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func rollback(t *testing.T, tx Tx) {
	t.Helper()
	if err := tx.Rollback(); err != nil {
		t.Fatalf("Rollback: %v", err)
	}
}

// write enqueues the messages in their own transaction and commits it.
func write(t *testing.T, h Harness, msgs ...postrider.Message) {
	t.Helper()
	commit(t, begin(t, h, msgs...))
}

func flatten(batches []feeds.Batch) []postrider.Message {
	var msgs []postrider.Message
	for _, b := range batches {
		msgs = append(msgs, b.Messages...)
	}
	return msgs
}

// expect checks that the batches hold exactly the given messages, each once, and those of a key in
// the given order. Between keys a store has no order.
func expect(t *testing.T, batches []feeds.Batch, want []postrider.Message) {
	t.Helper()
	got, wanted := byKey(flatten(batches)), byKey(want)
	for key, ids := range wanted {
		compare(t, key, got[key], ids)
	}
	for key, ids := range got {
		if _, ok := wanted[key]; !ok {
			t.Errorf("key %q: got %d messages, want none", key, len(ids))
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func compare(t *testing.T, key string, got, want []postrider.ID) {
	t.Helper()
	position := make(map[postrider.ID]int)
	for i, id := range want {
		position[id] = i
	}
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("key %q: got %d messages, want %d; the first missing is number %d", key, len(got), len(want), i)
		case i < len(want) && got[i] == want[i]:
			continue
		default:
			p, ok := position[got[i]]
			if !ok {
				t.Errorf("key %q: message number %d was not expected at all (%d wanted)", key, i, len(want))
			} else {
				t.Errorf("key %q: at number %d came message number %d", key, i, p)
			}
		}
		return
	}
}

func byKey(msgs []postrider.Message) map[string][]postrider.ID {
	ids := make(map[string][]postrider.ID)
	for _, m := range msgs {
		ids[m.OrderKey()] = append(ids[m.OrderKey()], m.ID)
	}
	return ids
}

// difference returns the first field in which two messages differ. Empty and nil payloads and
// headers are equal, and so are times within a microsecond, the precision of databases. It uses
// reflection so that it covers new fields of Message.
func difference(got, want postrider.Message) string {
	g, w := reflect.ValueOf(got), reflect.ValueOf(want)
	for i := range g.NumField() {
		field := g.Type().Field(i)
		if !field.IsExported() {
			continue
		}
		var same bool
		switch a := g.Field(i).Interface().(type) {
		case []byte:
			same = bytes.Equal(a, w.Field(i).Bytes())
		case map[string]string:
			b := w.Field(i).Interface().(map[string]string)
			same = len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
		case time.Time:
			same = a.Sub(w.Field(i).Interface().(time.Time)).Abs() < time.Microsecond
		default:
			same = reflect.DeepEqual(a, w.Field(i).Interface())
		}
		if !same {
			return fmt.Sprintf("%s is %.200q, want %.200q", field.Name, fmt.Sprint(g.Field(i)), fmt.Sprint(w.Field(i)))
		}
	}
	return ""
}
