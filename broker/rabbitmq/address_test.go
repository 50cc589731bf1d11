package rabbitmq

import (
	"slices"
	"testing"
)

// TestAddresses checks that each of several hosts gets all other parts of the URL, including
// parameters of the client.
func TestAddresses(t *testing.T) {
	t.Parallel()
	scheme, addresses, err := parseURL("amqps://user:p%40ss@a:1,[::1]:2/shop%2F1?heartbeat=3&channel_max=7")
	want := []string{"amqps://user:p%40ss@a:1/shop%2F1?heartbeat=3&channel_max=7", "amqps://user:p%40ss@[::1]:2/shop%2F1?heartbeat=3&channel_max=7"}
	if err != nil || scheme != "amqps" || !slices.Equal(addresses, want) {
		t.Errorf("got %q, %v, want %q", addresses, err, want)
	}
}
