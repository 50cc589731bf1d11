package stock_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/internal/stock"
)

// TestMissing checks that exactly the messages are missing that their own name lacks and cannot have
// dropped.
func TestMissing(t *testing.T) {
	c, err := codec.NewCodec(codec.Raw, "", codec.Dialect{})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	msgs := make([]postrider.Message, 6)
	for i := range msgs {
		msgs[i] = postrider.Message{ID: postrider.NewID(), Type: "t", Topic: []string{"kept", "dropped"}[i%2]}
	}
	msgs[2].WireID = "outbox-" + msgs[2].ID.String()
	read := func(name string, since time.Time) (*stock.Stock, error) {
		if want := now.Add(-time.Minute); !since.Equal(want) {
			t.Errorf("%s is read since %v, want %v", name, since, want)
		}
		s := stock.New()
		s.Add(msgs[1].BrokerID()) // also of the other name
		switch name {
		case "kept":
			s.Add(msgs[2].BrokerID())
			s.Add(msgs[4].ID.String())
		case "dropped":
			s.Dropped(now)
			s.Dropped(now.Add(-time.Hour)) // an earlier time changes nothing
		}
		return s, nil
	}
	if missing, err := stock.Missing(c, now, msgs, read); err != nil || !slices.Equal(missing, []int{0}) {
		t.Errorf("missing %v, %v; want message 0", missing, err)
	}
	broken := errors.New("broken")
	fail := func(string, time.Time) (*stock.Stock, error) { return nil, broken }
	if _, err := stock.Missing(c, now, msgs, fail); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of read", err)
	}
	if missing, err := stock.Missing(c, now, nil, fail); err != nil || missing != nil {
		t.Errorf("without messages: %v, %v", missing, err)
	}
}

// TestSince: how long ago a time was counts, not what our clock shows.
func TestSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		since := time.Now()
		time.Sleep(30 * time.Second)
		for _, off := range []time.Duration{0, 6 * time.Hour, -6 * time.Hour} {
			now := time.Now().Add(off)
			if got, want := stock.Since(since, now), now.Add(-30*time.Second-stock.Skew); !got.Equal(want) {
				t.Errorf("%v off: %v, want %v", off, got, want)
			}
		}
	})
}
