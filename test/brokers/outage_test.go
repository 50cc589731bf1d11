package brokers_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// outage is a way in which a broker is unavailable.
type outage struct {
	name  string
	b     server
	owned string // the server that is affected
	begin func(t *testing.T)
	end   func(t *testing.T) // returns when the broker works again
}

func outages() []outage {
	var all []outage
	for _, b := range servers {
		if !restartable(b) {
			continue
		}
		all = append(all, outage{
			name:  b.driver + " is killed",
			b:     b,
			owned: b.killable(),
			begin: func(t *testing.T) { need.Services(t, "kill", b.killable()) },
			end:   func(t *testing.T) { need.Services(t, "start", b.killable()) },
		})
	}
	all = append(all, outage{
		name:  "rabbitmq has a memory alarm",
		b:     find("rabbitmq"),
		owned: find("rabbitmq").killable(),
		begin: func(t *testing.T) { rabbitmqctl(t, "set_vm_memory_high_watermark", "0.00001") },
		end:   func(t *testing.T) { rabbitmqctl(t, "set_vm_memory_high_watermark", "0.4") },
	})
	return all
}

// restartable excludes servers that take long to start, except in the long tier. The suite of each
// broker simulates their outages with a proxy.
func restartable(b server) bool {
	switch b.driver {
	case "asynq", "sqs":
		return false // the same server as redis; keeps no data
	case "kafka", "pulsar", "rabbitmq":
		return need.IsLong()
	}
	return true
}

func find(driver string) server {
	for _, s := range servers {
		if s.driver == driver {
			return s
		}
	}
	panic(driver)
}

func rabbitmqctl(t *testing.T, args ...string) {
	t.Helper()
	ctl := need.Env(t, "POSTRIDER_TEST_RABBITMQCTL", "rabbitmq")
	if out, err := exec.Command(ctl, args...).CombinedOutput(); err != nil {
		t.Fatalf("rabbitmqctl %v: %v\n%s", args, err, out)
	}
}

// lengthOfOutage is 30 s in the long tier, and a few seconds otherwise.
func lengthOfOutage() time.Duration { return time.Duration(pick(4, 30)) * time.Second }

// TestOutage stops the broker under load and starts it again. Producers are not affected, nothing
// except the lease's heartbeat is written meanwhile, no transaction stays open, and the relay
// continues by itself soon after.
func TestOutage(t *testing.T) {
	for _, o := range outages() {
		t.Run(o.name, func(t *testing.T) {
			need.Own(t, o.owned)
			s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), o.b.create(t), 100)
			r, stop := s.carry(o.b.publisher(t, s.name))
			s.enqueue(1000)
			s.delivered(r, 1000, time.Minute)
			healthy := s.produce(lengthOfOutage() / 2)

			back := false
			restore := func() {
				if !back {
					back = true
					o.end(t)
				}
			}
			t.Cleanup(restore) // also when the test fails
			o.begin(t)
			watch := s.watch()
			during := s.produce(lengthOfOutage())
			seen := watch.stop()
			published := r.Stats().Published
			restore()
			working := time.Now()
			s.delivered(r, min(published+1, s.committed.Load()), 20*time.Second)
			recovery := time.Since(working)
			s.delivered(r, s.committed.Load(), 2*time.Minute)
			stop()

			t.Logf("%s: producers %.0f/s before, %.0f/s meanwhile; %d ledger rows in %v, longest idle transaction %v; recovery %v after the broker's",
				o.name, healthy, during, seen.ledgerRows, seen.length.Round(time.Second), seen.longest, recovery.Round(time.Millisecond))
			if need.IsLong() && during < 0.9*healthy { // a starting broker shares the machine
				t.Errorf("producers were slowed down: %.0f/s before, %.0f/s meanwhile", healthy, during)
			}
			seen.expect(t)
			if recovery > 5*time.Second {
				t.Errorf("the relay took %v to recover", recovery)
			}
			s.expect(s.hear(o.b.consumer(t, s.name), 2*time.Minute), !o.b.unordered)
		})
	}
}

// TestAbsentAtStart starts a relay before its broker.
func TestAbsentAtStart(t *testing.T) {
	for _, b := range servers {
		if !restartable(b) {
			continue
		}
		t.Run(b.driver, func(t *testing.T) {
			need.Own(t, b.killable())
			s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), b.create(t), 10)
			settings := b.sending(t, s.name)
			need.Services(t, "kill", b.killable())
			back := false
			restore := func() {
				if !back {
					back = true
					need.Services(t, "start", b.killable())
				}
			}
			t.Cleanup(restore)
			r, stop := s.carry(b.open(t, settings))
			s.enqueue(100)
			for r.Stats().Failed == 0 { // until the relay has noticed that the broker is down
				if !wait(t.Context(), 10*time.Millisecond) {
					return
				}
			}
			restore()
			working := time.Now()
			s.delivered(r, s.committed.Load(), time.Minute)
			t.Logf("everything was delivered %v after the broker had come", time.Since(working).Round(time.Millisecond))
			stop()
			s.expect(s.hear(b.consumer(t, s.name), time.Minute), !b.unordered)
		})
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// TestRefusals mixes a message for a missing name with good ones: it waits without using up
// attempts, and other keys continue.
func TestRefusals(t *testing.T) {
	for driver, missing := range map[string]string{"nats": "no-stream-has-this", "rabbitmq": "no-such-queue", "kafka": "no-such-topic"} {
		t.Run(driver, func(t *testing.T) {
			b := find(driver)
			s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), b.create(t), 50)
			lost := postrider.Event("parcel.lost", postrider.Aggregate{Type: "parcel", ID: "lost"}, []byte("-1"))
			lost.Topic = missing
			s.add(lost)
			r, stop := s.carry(b.publisher(t, s.name))
			s.enqueue(2000)
			s.delivered(r, 2000, time.Minute)
			stats := r.Stats()
			stop()
			if stats.Refused != 0 {
				t.Error("a message was blamed for a name that is missing")
			}
			s.expect(s.hear(b.consumer(t, s.name), time.Minute), !b.unordered)
		})
	}
}
