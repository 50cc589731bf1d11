package relay_test

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
)

// script is a store of one feed whose answers the test provides. Missing functions succeed with no
// result.
type script struct {
	balance func(ctx context.Context) (feeds.Share, error)
	read    func(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error)
	settle  func(ctx context.Context, marks []feeds.Mark) ([]int, error)
	release func(ctx context.Context, marks []feeds.Mark) error
}

func (s *script) Open(context.Context, string, feeds.Member) (feeds.Feed, error) {
	return s, nil
}
func (s *script) Close(context.Context) error { return nil }

func (s *script) Balance(ctx context.Context) (feeds.Share, error) {
	if s.balance == nil {
		return feeds.Share{Shards: []int{0}, Quota: 1, Members: 1}, nil
	}
	return s.balance(ctx)
}

func (s *script) Read(ctx context.Context, want []feeds.Demand) ([]feeds.Batch, error) {
	if s.read == nil {
		return nil, nil
	}
	return s.read(ctx, want)
}

func (s *script) Settle(ctx context.Context, marks []feeds.Mark) ([]int, error) {
	if s.settle == nil {
		return nil, nil
	}
	return s.settle(ctx, marks)
}

func (s *script) Release(ctx context.Context, marks []feeds.Mark) error {
	if s.release == nil {
		return nil
	}
	return s.release(ctx, marks)
}

func (s *script) Defer(context.Context, []feeds.Deferral) error { return nil }

func (s *script) Blocked(context.Context, int) ([]string, error) { return nil, nil }

func (s *script) Due(context.Context, feeds.DueRequest) (feeds.Due, error) {
	return feeds.Due{Next: -1}, nil
}

func (s *script) Conclude(context.Context, []feeds.Conclusion) ([]string, error) { return nil, nil }

func (s *script) Suspect(context.Context, feeds.Start) (int, error) { return 1, nil }

// batch returns messages of shard 0 with different keys, numbered from the given number on.
func batch(from, n int) feeds.Batch {
	b := feeds.Batch{Cursor: from}
	for i := range n {
		name := strconv.Itoa(from + i)
		b.Messages = append(b.Messages, postrider.Message{Type: name, Key: name})
	}
	return b
}

// publisher is a function that handles calls.
type publisher func(ctx context.Context, msgs []postrider.Message) []error

func (p publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return p(ctx, msgs)
}
func (p publisher) Close() error { return nil }

// turns returns a Balance function that returns shard 0 in the rounds that are true; the last one
// repeats.
func turns(held ...bool) func(context.Context) (feeds.Share, error) {
	round := -1
	return func(context.Context) (feeds.Share, error) {
		round++
		share := feeds.Share{Quota: 1, Members: 1}
		if held[min(round, len(held)-1)] {
			share.Shards = []int{0}
		}
		return share, nil
	}
}

// TestPublishEndsWithLease: the context of a Publish ends before the lease does, counted from the
// start of the call that renewed it, and no further Publish begins.
func TestPublishEndsWithLease(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var mu sync.Mutex
		var renewed, last time.Time // start of the last successful Settle, end of the last Publish
		settles := 0
		reads := 0
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				reads++
				return []feeds.Batch{batch(reads, 1)}, nil
			},
			settle: func(ctx context.Context, _ []feeds.Mark) ([]int, error) {
				mu.Lock()
				settles++
				n, at := settles, time.Now()
				mu.Unlock()
				if n < 10 {
					return nil, nil
				}
				if n > 10 {
					return nil, errOdd
				}
				time.Sleep(4 * time.Second) // a success that takes its time
				mu.Lock()
				renewed = at
				mu.Unlock()
				return nil, nil
			},
		}
		calls := 0
		r := start(t, s, publisher(func(ctx context.Context, msgs []postrider.Message) []error {
			calls++
			if calls < 600 {
				time.Sleep(10 * time.Millisecond)
				return nil
			}
			<-ctx.Done()
			mu.Lock()
			last = time.Now()
			mu.Unlock()
			return repeat(ctx.Err(), len(msgs))
		}), relay.Config{DrainTimeout: time.Second})
		time.Sleep(time.Minute)
		mu.Lock()
		if used := last.Sub(renewed); used > lease*9/10 || used < lease*8/10 {
			t.Errorf("the last Publish has ended %v after the lease was renewed, want 9 s", used)
		}
		mu.Unlock()
		r.stop()
	})
}

// TestNothingBeginsWithoutLease: fencing does not depend on a publisher that respects its context.
func TestNothingBeginsWithoutLease(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		begin := time.Now()
		reads, settles := 0, 0
		var last time.Duration
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				reads++
				return []feeds.Batch{batch(reads, 1)}, nil
			},
			settle: func(context.Context, []feeds.Mark) ([]int, error) {
				if settles++; settles == 1 {
					return nil, nil
				}
				return nil, errOdd
			},
		}
		r := start(t, s, publisher(func(context.Context, []postrider.Message) []error {
			time.Sleep(10 * time.Millisecond)
			last = time.Since(begin)
			return nil
		}), relay.Config{})
		time.Sleep(time.Minute)
		r.stop()
		if last > lease*9/10 || last < lease*7/10 {
			t.Errorf("the last Publish has ended %v after the only renewal", last)
		}
	})
}

// TestNothingBeginsBeforeSettle: a Balance whose answer was lost may have taken a shard long before
// the one that returns it, and its lease may have expired. Here another relay owns the shard, as
// the first Settle shows.
func TestNothingBeginsBeforeSettle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				return []feeds.Batch{batch(1, 1)}, nil
			},
			settle: func(_ context.Context, marks []feeds.Mark) (lost []int, err error) {
				time.Sleep(time.Second)
				for _, m := range marks {
					lost = append(lost, m.Shard)
				}
				return lost, nil
			},
		}
		r := start(t, s, publisher(func(context.Context, []postrider.Message) []error {
			t.Error("a message was published without a lease")
			return nil
		}), relay.Config{})
		time.Sleep(30 * time.Second)
		r.stop()
	})
}

// TestReadAcrossLoss: a shard is lost and regained during a read of it. No worker may use the result,
// but the store considers it handed out, so the relay releases the shard once to make the store
// start again.
func TestReadAcrossLoss(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		settles := 0
		var handedOut atomic.Bool
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				time.Sleep(lease / 2)
				if handedOut.Swap(true) {
					return nil, nil
				}
				return []feeds.Batch{batch(1, 3)}, nil
			},
			settle: func(context.Context, []feeds.Mark) ([]int, error) {
				if settles++; settles == 2 { // before the first read ends
					return []int{0}, nil
				}
				return nil, nil
			},
			release: func(context.Context, []feeds.Mark) error {
				handedOut.Store(false)
				return nil
			},
		}
		sent := 0
		r := start(t, s, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			sent += len(msgs)
			return nil
		}), relay.Config{BalanceInterval: 100 * time.Millisecond})
		time.Sleep(3 * lease)
		r.stop()
		if sent != 3 {
			t.Errorf("%d messages were sent, want 3", sent)
		}
	})
}

// TestHungRelease: a Release without an answer does not cost the relay its other shards.
func TestHungRelease(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		begin := time.Now()
		var renewed time.Time
		longest := time.Duration(0)
		s := &script{
			balance: func(context.Context) (feeds.Share, error) {
				share := feeds.Share{Shards: []int{0, 1}, Quota: 2, Members: 1}
				if time.Since(begin) > time.Second {
					share.Quota, share.Members = 1, 2
				}
				return share, nil
			},
			settle: func(_ context.Context, marks []feeds.Mark) ([]int, error) {
				for _, m := range marks {
					if m.Shard == 0 {
						if !renewed.IsZero() {
							longest = max(longest, time.Since(renewed))
						}
						renewed = time.Now()
					}
				}
				return nil, nil
			},
			release: func(ctx context.Context, marks []feeds.Mark) error {
				if len(marks) == 1 && time.Since(begin) < time.Minute {
					<-ctx.Done()
					return ctx.Err()
				}
				return nil
			},
		}
		r := start(t, s, publisher(nil), relay.Config{})
		time.Sleep(time.Minute)
		r.stop()
		if longest == 0 || longest > lease*8/10 {
			t.Errorf("a lease of %v was renewed after %v", lease, longest)
		}
	})
}

// TestHungSettle: a Settle without an answer ends in time for a second attempt, so that the lease
// is kept.
func TestHungSettle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var hung bool
		var renewed time.Time
		longest := time.Duration(0)
		s := &script{
			balance: turns(true),
			settle: func(ctx context.Context, _ []feeds.Mark) ([]int, error) {
				if hung = !hung; hung {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				if !renewed.IsZero() {
					longest = max(longest, time.Since(renewed))
				}
				renewed = time.Now()
				return nil, nil
			},
		}
		r := start(t, s, publisher(nil), relay.Config{})
		time.Sleep(time.Minute)
		r.stop()
		if longest == 0 || longest >= lease {
			t.Errorf("a lease of %v was renewed after %v", lease, longest)
		}
	})
}

// TestFencedBySettle: the relay drops a shard that Settle reports as lost without waiting for
// Balance.
func TestFencedBySettle(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		balances := turns(true)
		first := true
		s := &script{
			balance: func(ctx context.Context) (feeds.Share, error) {
				if first {
					first = false
					return balances(ctx)
				}
				<-ctx.Done()
				return feeds.Share{}, ctx.Err()
			},
			settle: func(context.Context, []feeds.Mark) ([]int, error) { return []int{0}, nil },
		}
		r := start(t, s, publisher(nil), relay.Config{DrainTimeout: time.Second})
		time.Sleep(lease / 2)
		if got := r.Stats(); got.Fenced != 1 || got.Shards != 0 {
			t.Errorf("stats %+v, want a fenced shard", got)
		}
		r.cancel()
		<-r.done
	})
}

// TestRegained: a shard that is lost and comes back gets a new worker, which waits for the Publish of
// the old one.
func TestRegained(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		begin := time.Now()
		handed := 0
		s := &script{
			balance: turns(true, false, true),
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				if handed == 0 || (handed == 1 && time.Since(begin) > 2*time.Second) {
					handed++
					return []feeds.Batch{batch(1, 3)}, nil
				}
				return nil, nil
			},
		}
		inFlight, calls := 0, 0
		var mu sync.Mutex
		r := start(t, s, publisher(func(context.Context, []postrider.Message) []error {
			mu.Lock()
			inFlight++
			calls++
			if inFlight > 1 {
				t.Error("two workers publish the messages of one shard")
			}
			mu.Unlock()
			time.Sleep(7 * time.Second) // ignores its context
			mu.Lock()
			defer mu.Unlock()
			inFlight--
			return nil
		}), relay.Config{})
		time.Sleep(30 * time.Second)
		r.stop()
		if got := r.Stats(); calls != 2 || got.Fenced != 1 || got.Published != 3 {
			t.Errorf("%d calls and stats %+v, want 2 calls and the 3 messages of the second", calls, got)
		}
	})
}

// TestStaleRead: messages that were read for a dropped worker are not passed to the next one.
func TestStaleRead(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		reads := 0
		s := &script{
			balance: turns(true, false, true),
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				if reads++; reads == 1 {
					time.Sleep(5 * time.Second)
					return []feeds.Batch{batch(1, 1)}, nil
				}
				return nil, nil
			},
		}
		r := start(t, s, publisher(func(context.Context, []postrider.Message) []error {
			t.Error("a message of the former worker was published")
			return nil
		}), relay.Config{})
		time.Sleep(10 * time.Second)
		r.stop()
	})
}

// TestResetRemembers: a crashed server has lost the last settled progress and returns the messages
// again. The relay remembers that they have arrived. Messages that come back for any other reason
// are sent again.
func TestResetRemembers(t *testing.T) {
	for _, c := range []struct {
		name  string
		lost  func(settles int) ([]int, error)
		times int
	}{
		{"reset", func(int) ([]int, error) { return nil, feeds.ErrReset }, 1},
		{"lost to another", func(int) ([]int, error) { return []int{0}, nil }, 2},
	} {
		bubble(t, c.name, func(t *testing.T) {
			b := batch(1, 3)
			for i := range b.Messages {
				b.Messages[i].ID = postrider.NewID()
			}
			var fresh, forgotten atomic.Bool
			fresh.Store(true)
			settles, done := 0, 0
			s := &script{
				balance: func(context.Context) (feeds.Share, error) {
					if forgotten.Swap(false) {
						fresh.Store(true)
					}
					return feeds.Share{Shards: []int{0}, Quota: 1, Members: 1}, nil
				},
				read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
					if !fresh.Swap(false) {
						return nil, nil
					}
					return []feeds.Batch{b}, nil
				},
				settle: func(_ context.Context, marks []feeds.Mark) ([]int, error) {
					done = max(done, marks[0].Done)
					if settles++; settles == 2 {
						forgotten.Store(true)
						done = 0
						return c.lost(settles)
					}
					return nil, nil
				},
			}
			sent := map[string]int{}
			r := start(t, s, publisher(func(_ context.Context, msgs []postrider.Message) []error {
				for i := range msgs {
					sent[msgs[i].Type]++
				}
				return nil
			}), relay.Config{})
			time.Sleep(10 * time.Second)
			r.stop()
			for _, name := range []string{"1", "2", "3"} {
				if sent[name] != c.times {
					t.Errorf("message %s was sent %d times, want %d", name, sent[name], c.times)
				}
			}
			if done != 3 {
				t.Errorf("%d messages were settled in the end, want 3", done)
			}
		})
	}
}

// TestResetDoesNotWait: messages that wait for the destination to recover do not delay a reset.
func TestResetDoesNotWait(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		reads, settles := 0, 0
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				if reads++; reads == 1 {
					return []feeds.Batch{batch(1, 3)}, nil
				}
				return nil, nil
			},
			settle: func(context.Context, []feeds.Mark) ([]int, error) {
				if settles++; settles == 2 {
					return nil, feeds.ErrReset
				}
				return nil, nil
			},
		}
		r := start(t, s, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			errs := make([]error, len(msgs))
			for i := range msgs {
				if msgs[i].Type == "2" {
					errs[i] = postrider.Unavailable(errOdd)
				}
			}
			return errs
		}), relay.Config{})
		time.Sleep(time.Second)
		if got := r.Stats(); got.Resets != 1 || got.Shards != 1 || got.Buffered != 0 {
			t.Errorf("stats %+v, want a new shard worker after the reset", got)
		}
		r.stop()
	})
}

// TestMarks: a mark names the batch and the confirmed prefix. Progress made during a Settle is not
// lost, and the release includes the last mark.
func TestMarks(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var mu sync.Mutex
		var marks []feeds.Mark
		reads := 0
		s := &script{
			read: func(context.Context, []feeds.Demand) ([]feeds.Batch, error) {
				if reads++; reads > 2 {
					return nil, nil
				}
				return []feeds.Batch{batch(10*reads, 10)}, nil
			},
			settle: func(_ context.Context, m []feeds.Mark) ([]int, error) {
				mu.Lock()
				if m[0].Batch != nil {
					marks = append(marks, m...)
				}
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				return nil, nil
			},
			release: func(_ context.Context, m []feeds.Mark) error {
				mu.Lock()
				defer mu.Unlock()
				marks = append(marks, m...)
				return nil
			},
		}
		r := start(t, s, publisher(func(_ context.Context, msgs []postrider.Message) []error {
			time.Sleep(10 * time.Millisecond)
			return nil
		}), relay.Config{BatchSize: 4})
		time.Sleep(5 * time.Second)
		mu.Lock()
		if last := marks[len(marks)-1]; last.Shard != 0 || last.Batch.Cursor != 20 || last.Done != 10 {
			t.Errorf("the last mark is %+v, want the end of the second batch", last)
		}
		if first := marks[0]; first.Batch.Cursor != 10 || first.Done != 4 {
			t.Errorf("the first mark is %+v, want the first 4 of the first batch", first)
		}
		before := len(marks)
		mu.Unlock()
		r.stop()
		if len(marks) != before+1 || marks[before].Batch != nil {
			t.Errorf("marks at the release: %+v, want one that moves nothing", marks[before:])
		}
	})
}

// TestStopDuringBalance: shards that a Balance takes during the stop are released.
func TestStopDuringBalance(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		var released []feeds.Mark
		s := &script{
			balance: func(ctx context.Context) (feeds.Share, error) {
				select {
				case <-time.After(time.Second):
					return feeds.Share{Shards: []int{3, 5}, Quota: 8, Members: 1}, nil
				case <-ctx.Done():
					return feeds.Share{}, ctx.Err()
				}
			},
			release: func(_ context.Context, marks []feeds.Mark) error {
				released = append(released, marks...)
				return nil
			},
		}
		r := start(t, s, publisher(nil), relay.Config{})
		time.Sleep(time.Millisecond)
		r.stop()
		if len(released) != 2 {
			t.Errorf("released %+v, want shards 3 and 5", released)
		}
	})
}

// TestReleaseTriesAgain: a lost connection at the end does not leave shards unreleased.
func TestReleaseTriesAgain(t *testing.T) {
	bubble(t, "", func(t *testing.T) {
		tries := 0
		s := &script{release: func(context.Context, []feeds.Mark) error {
			if tries++; tries < 3 {
				return errOdd
			}
			return nil
		}}
		r := start(t, s, publisher(nil), relay.Config{})
		time.Sleep(time.Second)
		r.stop()
		if tries != 3 {
			t.Errorf("%d tries, want 3", tries)
		}
	})
}
