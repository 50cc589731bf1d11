package shard

import (
	"testing"

	"github.com/postrider/postrider"
)

// TestHashKey: two messages have the same hash if and only if they have the same OrderKey.
func TestHashKey(t *testing.T) {
	msgs := []postrider.Message{
		{},
		{TenantID: "t"},
		{Key: "order/7"},
		{AggregateType: "order", AggregateID: "7"},
		{Key: "order/7", AggregateType: "cart", AggregateID: "1"},
		{Key: "order", AggregateID: "7"},
		{AggregateType: "order/7"},
		{Key: "order/7/"},
		{AggregateID: "order/7"},
		{AggregateType: "a/b", AggregateID: "c"},
		{AggregateType: "a", AggregateID: "b/c"},
	}
	for i := range msgs {
		a := &msgs[i]
		if (hashKey(a) == 0) != (a.OrderKey() == "") {
			t.Errorf("%q has the hash %d", a.OrderKey(), hashKey(a))
		}
		for j := range msgs {
			b := &msgs[j]
			if (hashKey(a) == hashKey(b)) != (a.OrderKey() == b.OrderKey()) {
				t.Errorf("%q and %q disagree with their hashes", a.OrderKey(), b.OrderKey())
			}
		}
	}
}
