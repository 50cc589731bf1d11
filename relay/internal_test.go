package relay

import (
	"testing"
	"time"

	"github.com/postrider/postrider/retry"
)

func TestBackoff(t *testing.T) {
	policy := retry.Policy{First: 100 * time.Millisecond, Most: 2 * time.Second}
	b, bounded := backoff{policy: policy}, backoff{policy: policy, most: time.Second}
	want := policy.First
	for range 100 {
		if got := b.next(); got < want || got > min(want+want/2, policy.Most) {
			t.Fatalf("got %v, want %v and up to half of it more, within %v", got, want, policy.Most)
		}
		if got := bounded.next(); got < min(want, time.Second) || got > time.Second {
			t.Fatalf("got %v, want %v within 1 s", got, want)
		}
		want = min(2*want, policy.Most)
	}
	if b.reset(); b.next() > 150*time.Millisecond {
		t.Error("a reset does not begin again")
	}
}
