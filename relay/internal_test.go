package relay

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
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

// TestFormerInFlight: a deferred message that a former owner may have had in flight is asked about
// while it cannot be sent, also when the log holds no doubt any more, and also by the owner after the
// next one.
func TestFormerInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		former := time.Now().Add(-time.Second)
		r := newRecaller(context.Background(), &session{shared: &shared{}}, slog.New(slog.DiscardHandler), "shop", 1, former)
		r.reach(0)
		r.pass(0)
		if r.doubts() || !r.since().Equal(former) {
			t.Fatalf("at the end of the log: doubts %t, since %v", r.doubts(), r.since())
		}
		msgs := []postrider.Message{{ID: postrider.NewID()}}
		for range 5 { // the destination is down
			time.Sleep(inFlight - time.Second)
			r.tried(msgs, []error{postrider.Unavailable(errors.New("down"))})
		}
		held := []feeds.Conclusion{{Status: feeds.StatusHeld}}
		r.hold(held)
		r.resume(msgs, nil)
		if names, since := r.book.Question([]string{""}); len(names) != 1 || !since.Equal(former) || !held[0].Sent.Equal(former) {
			t.Errorf("asks %q since %v; held since %v, want %v", names, since, held[0].Sent, former)
		}
		r.tried(msgs, []error{postrider.NameUnavailable(errors.New("full"))}) // which can last for days
		time.Sleep(inFlight + time.Second)
		if !r.since().IsZero() {
			t.Errorf("a minute later: since %v", r.since())
		}
	})
}
