package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// testFields sends messages with extreme contents and compares them with what comes back.
func testFields(t *testing.T, h Harness) {
	long := func(prefix string) string { return prefix + strings.Repeat("ü", (postrider.MaxText-len(prefix))/2) }
	allBytes := make([]byte, 256)
	for i := range allBytes {
		allBytes[i] = byte(i)
	}
	moment := time.Date(2024, 2, 29, 23, 59, 59, 123_456_000, time.UTC)
	cases := map[string]postrider.Message{
		"every field": {
			ID: postrider.NewID(), Type: "order.placed", AggregateType: "order", AggregateID: "42", Key: "customer/7",
			Topic: "orders", RoutingKey: "eu.orders", TenantID: "acme", Payload: allBytes,
			ContentType: "application/octet-stream", Headers: map[string]string{"a": "1", "b": "2"}, SchemaVersion: 3,
			SchemaID: "urn:order:3", DedupKey: "order:42", OccurredAt: moment, CorrelationID: "c-1", CausationID: "c-0",
			DeliverAfter: moment.Add(time.Hour), Priority: -7,
		},
		"only what is required": {ID: postrider.NewID(), Type: "x", SchemaVersion: 1, OccurredAt: moment},
		"nanoseconds": {
			ID: postrider.NewID(), Type: "x", SchemaVersion: 1,
			OccurredAt: time.Date(1999, 12, 31, 1, 2, 3, 999_999_999, time.FixedZone("", 5*3600+1800)),
		},
		"empty payload and headers": {
			ID: postrider.NewID(), Type: "x", Key: "k", SchemaVersion: 1, OccurredAt: moment,
			Payload: []byte{}, Headers: map[string]string{},
		},
		"zero bytes": {
			ID: postrider.NewID(), Type: "x", SchemaVersion: 1, OccurredAt: moment, Payload: make([]byte, 3),
		},
		"JSON with odd spacing": {
			ID: postrider.NewID(), Type: "x", SchemaVersion: 1, OccurredAt: moment,
			Payload: []byte("{ \"b\":1.0 ,\n\"a\":1, \"a\":2 }"), ContentType: "application/json",
		},
		"text that needs quoting": {
			ID: postrider.NewID(), Type: `'; DROP "x" -- \ %s {}`, AggregateType: "a/b", AggregateID: "\t\r\n",
			TenantID: "日本語 🚚", SchemaVersion: math.MaxInt32, OccurredAt: moment,
			Headers: map[string]string{"ключ": "значение", "quote\"": `back\slash`, "empty": "", " ": "\u2028", "🚚": "\x01\x7f"},
		},
		"longest text": {
			ID: postrider.NewID(), Type: long("t"), AggregateType: long("at"), AggregateID: long("ai"), Key: long("k"),
			Topic: long("to"), RoutingKey: long("r"), TenantID: long("te"), ContentType: long("ct"),
			SchemaID: long("s"), DedupKey: long("d"), CorrelationID: long("co"), CausationID: long("ca"),
			Headers:       map[string]string{"h": strings.Repeat("v", postrider.MaxHeaders-1)},
			SchemaVersion: 1, OccurredAt: moment,
		},
		"foreign ID": {
			ID: postrider.ID(bytes.Repeat([]byte{0xff}, 16)), Type: "x", SchemaVersion: 1, OccurredAt: moment,
		},
	}
	tx := h.Begin(t)
	for _, m := range cases {
		enqueue(t, tx, m)
	}
	commit(t, tx)

	got := make(map[postrider.ID]postrider.Message)
	for _, m := range flatten(joinAlone(t, h, "feed", longLease).next(len(cases), 100)) {
		got[m.ID] = m
	}
	for name, want := range cases {
		m, ok := got[want.ID]
		if !ok {
			t.Errorf("%s: did not arrive", name)
		} else if diff := difference(m, want); diff != "" {
			t.Errorf("%s: %s", name, diff)
		} else if m.OrderKey() != want.OrderKey() {
			t.Errorf("%s: OrderKey is %q, want %q", name, m.OrderKey(), want.OrderKey())
		}
	}
}

func testLargePayload(t *testing.T, h Harness) {
	payload := make([]byte, 1<<20)
	rng := rand.NewChaCha8([32]byte{})
	_, _ = rng.Read(payload) // never fails
	want := postrider.Event("storetest.large", postrider.Aggregate{Type: "storetest", ID: "large"}, payload)
	write(t, h, want)
	got := flatten(joinAlone(t, h, "feed", longLease).next(1, 10))[0]
	if diff := difference(got, want); diff != "" {
		t.Error(diff)
	}
}

func testZeroIDIsFilled(t *testing.T, h Harness) {
	given := series("k", 3)
	for i := range given {
		given[i].ID = postrider.ID{}
	}
	write(t, h, given...)
	seen := make(map[postrider.ID]bool)
	for i, m := range flatten(joinAlone(t, h, "feed", longLease).next(len(given), 10)) {
		if m.ID.IsZero() || seen[m.ID] {
			t.Errorf("message %d came with the ID %v, want one of its own", i, m.ID)
		}
		seen[m.ID] = true
		given[i].ID = m.ID
		if diff := difference(m, given[i]); diff != "" {
			t.Errorf("message %d: %s", i, diff)
		}
	}
}

// testCopies checks that the store shares no memory with the producer or with the messages that it
// returned.
func testCopies(t *testing.T, h Harness) {
	want := postrider.Event("storetest.happened", postrider.Aggregate{Type: "storetest", ID: "k"}, []byte("abc"))
	want.Headers = map[string]string{"h": "v"}
	given := want
	given.Payload = bytes.Clone(want.Payload)
	given.Headers = map[string]string{"h": "v"}
	spoil := func(m postrider.Message) {
		m.Payload[0] = 'X'
		m.Headers["h"] = "spoilt"
	}

	tx := begin(t, h, given)
	spoil(given)
	commit(t, tx)
	for _, feed := range []string{"first", "second"} {
		if h.OneFeed { // the message then comes twice
			feed = "feed"
		}
		r := joinAlone(t, h, feed, longLease)
		got := flatten(r.next(1, 10))[0]
		if diff := difference(got, want); diff != "" {
			t.Errorf("feed %s: %s", feed, diff)
		}
		spoil(got)
		r.leave()
	}
}

// testInvalidIsRefusedWhole checks that an invalid message leaves nothing behind, and the
// transaction usable.
func testInvalidIsRefusedWhole(t *testing.T, h Harness) {
	msgs := series("k", 3)
	msgs[1].Type = ""
	tx := h.Begin(t)
	var invalid *postrider.InvalidError
	if err := tx.Enqueue(t.Context(), msgs...); !errors.As(err, &invalid) || invalid.Field != "Type" {
		t.Fatalf("Enqueue of a message without type: %v, want an InvalidError about Type", err)
	}
	twice := one("k")
	for field, wrong := range map[string][]postrider.Message{
		"Payload":     {one("k"), postrider.Event("t", postrider.Aggregate{Type: "order", ID: "1"}, json.RawMessage("{"))},
		"AggregateID": {one("k"), postrider.Event("t", postrider.Aggregate{Type: "order"}, nil)},
		"ID":          {twice, one("k"), twice},
	} {
		if err := tx.Enqueue(t.Context(), wrong...); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("got %v, want an InvalidError about %s", err, field)
		}
		if _, err := tx.Offer(t.Context(), wrong...); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("got %v, want an InvalidError about %s", err, field)
		}
	}
	good := one("k")
	enqueue(t, tx, good)
	enqueue(t, tx) // no messages are valid input
	commit(t, tx)
	r := joinAlone(t, h, "feed", longLease)
	expect(t, r.next(1, 10), []postrider.Message{good})
	r.idle()
}
