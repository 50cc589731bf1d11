package work

import (
	"testing"
	"unicode/utf8"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// Every message can be read without the ledger, however short its payload is, and is valid.
func TestFactsAreRead(t *testing.T) {
	names := names(world.NATS, 10)
	sizes := map[string]int{}
	for i := range 20_000 {
		name, seq := names[i%len(names)], int64(i%3)
		f := NewFact(world.NATS, name, seq)
		destination, key, number, err := Read(f.Payload, OursOf(f.Headers))
		if err != nil || destination != world.NATS || key != name || number != seq {
			t.Fatalf("%s %d: read as %s %s %d, %v", name, seq, destination, key, number, err)
		}
		m, err := f.Message()
		if err == nil && !OnlySQL(name) {
			err = m.Validate()
		}
		if err != nil || f.Unordered != (m.OrderKey() == "") || utf8.RuneCountInString(m.Key) > 1024 {
			t.Fatalf("%s: %+v, %v", name, f.Intent, err)
		}
		switch n := len(f.Payload); {
		case n == 0:
			sizes["empty"]++
		case n == world.MaxPayload:
			sizes["largest"]++
		case n > world.MaxPayload:
			t.Fatalf("%d bytes", n)
		}
	}
	if sizes["empty"] == 0 || sizes["largest"] == 0 {
		t.Errorf("sizes: %v", sizes)
	}
}

// Names of keys and their spellings are unique: two keys must not be one for the product.
func TestKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	tenants := map[string]bool{}
	for _, name := range names(world.Kafka, 300) {
		if seen[Spelling(name)] {
			t.Errorf("%s is spelled like another key", name)
		}
		seen[Spelling(name)], tenants[Tenant(name)] = true, true
	}
	if len(tenants) < 4 || !seen[""] {
		t.Errorf("tenants %v", tenants)
	}
}
