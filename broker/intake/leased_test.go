package intake_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/internal/lease"
	"github.com/postrider/postrider/retry"
)

// TestPartWhile checks that nothing starts once a part is invalid: neither messages that wait
// behind another of their key, nor retries, nor new messages. The part need not be dropped for
// that.
func TestPartWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var counters intake.Counters
		var valid atomic.Bool
		valid.Store(true)
		var mu sync.Mutex
		var begun []string
		in := intake.Open(ctx, func(_ context.Context, m postrider.Message) error {
			mu.Lock()
			begun = append(begun, m.Key+string(m.Payload))
			mu.Unlock()
			time.Sleep(time.Second)
			if m.Key == "fails" {
				return errors.New("no")
			}
			return nil
		}, intake.Config{Limit: 4, Retry: retry.Policy{Pauses: []time.Duration{time.Second}}, Counters: &counters, Logger: quiet})
		p := in.PartWhile(valid.Load)
		var done []string
		for n := range 3 {
			for _, key := range []string{"works", "fails"} {
				p.Accept(intake.Delivery{Message: message(key, n), Done: func() { done = append(done, fmt.Sprint(key, n)) }})
			}
		}
		time.Sleep(time.Second / 2)
		valid.Store(false)
		time.Sleep(time.Minute)
		p.Accept(intake.Delivery{Message: message("new", 0), Done: func() { t.Error("done") }})
		time.Sleep(time.Minute)
		mu.Lock()
		slices.Sort(begun)
		if !slices.Equal(begun, []string{"fails0", "works0"}) || !slices.Equal(done, []string{"works0"}) {
			t.Errorf("begun are %v, done %v", begun, done)
		}
		mu.Unlock()
		if s := counters.Stats(); s.Waiting != 0 || s.Failing != 0 {
			t.Errorf("%+v", s)
		}
		if free := in.Free(); free != 4 {
			t.Errorf("%d of 4 slots are free", free)
		}
		cancel()
		in.Wait()
		p.Wait()
	})
}

// granting is a broker that grants the lease unless refuses is set.
type granting struct{ refuses atomic.Bool }

func (g *granting) Look(context.Context) (lease.Sight, error) {
	return lease.Sight{Free: !g.refuses.Load()}, nil
}
func (g *granting) Take(context.Context) (bool, error)  { return !g.refuses.Load(), nil }
func (g *granting) Renew(context.Context) (bool, error) { return !g.refuses.Load(), nil }
func (g *granting) Release(context.Context) error       { return nil }

// TestLeased revokes the lease while handlers run, and grants it again: nothing must start in
// between, handlers must be cancelled, and the next term must begin, with the unfinished messages,
// once they have returned.
func TestLeased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var store granting
		var mu sync.Mutex
		var terms, cancelled, running, overlaps int
		done := map[int]int{}
		in := intake.Open(ctx, func(ctx context.Context, m postrider.Message) error {
			mu.Lock()
			if running++; running > 1 {
				overlaps++
			}
			mu.Unlock()
			defer func() {
				mu.Lock()
				defer mu.Unlock()
				running--
			}()
			select {
			case <-time.After(3300 * time.Millisecond): // never at the moment of a renewal
				return nil
			case <-ctx.Done():
				time.Sleep(20 * time.Second) // to clean up
				mu.Lock()
				defer mu.Unlock()
				cancelled++
				return ctx.Err()
			}
		}, intake.Config{Logger: quiet})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			in.Leased(&store, lease.Config{Length: 10 * time.Second, Logger: quiet}, func(ctx context.Context, p *intake.Part, _ *lease.Term) {
				mu.Lock()
				terms++
				if running > 0 {
					t.Error("a term begins while handlers of the last are at work")
				}
				var left []int
				for n := range 10 {
					if done[n] == 0 {
						left = append(left, n)
					}
				}
				mu.Unlock()
				for _, n := range left {
					p.Accept(intake.Delivery{Message: message("k", n), Done: func() {
						mu.Lock()
						defer mu.Unlock()
						done[n]++
					}})
				}
				<-ctx.Done()
			})
			in.Wait()
		}()
		time.Sleep(10500 * time.Millisecond)
		store.refuses.Store(true)
		time.Sleep(10 * time.Second)
		store.refuses.Store(false)
		time.Sleep(time.Minute)
		mu.Lock()
		if terms != 2 || cancelled != 1 || overlaps != 0 || len(done) != 10 {
			t.Errorf("%d terms, %d handlers cancelled, %d overlap, done %v", terms, cancelled, overlaps, done)
		}
		mu.Unlock()
		cancel()
		<-ended
	})
}
