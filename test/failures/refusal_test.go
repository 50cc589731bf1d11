package failures_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/retry"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/built"
)

// postrider runs a command of the program on the scene's database and returns its output. A command
// that finds a problem exits with 1, which is not an error here.
func (s *scene) postrider(args ...string) []byte {
	s.t.Helper()
	cmd := exec.Command(built.Program(s.t, "cmd/postrider"), append(args, "--schema", s.cfg.Schema)...)
	cmd.Env = append(os.Environ(), "DATABASE_URL="+s.pool.Config().ConnString())
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
		if exit != nil {
			err = errors.New(string(exit.Stderr))
		}
		s.t.Fatalf("postrider %v: %v", args, err)
	}
	return out
}

// TestAllNotFound simulates an ingress that answers 404 to everything for a while. No message
// becomes a dead letter, the database has the cause within seconds, though the relay runs in
// another program, and afterwards all messages arrive in order.
func TestAllNotFound(t *testing.T) {
	t.Parallel()
	built.Program(t, "cmd/postrider")
	for what, path := range map[string]string{"one endpoint": "", "endpoints by name": "/{name}"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			pgtest.Newest(t, func(t *testing.T, dsn string) {
				s := newScene(t, dsn, postgres.Layout{})
				var up atomic.Bool
				e := newEndpoint(t, func(_, _ string) int {
					if up.Load() {
						return 0
					}
					return http.StatusNotFound
				})
				s.start(e.sender(t, path), relay.Config{})
				const rate = 50
				all := rate * pick(5, 40)
				told := make(chan time.Duration, 1)
				for i, start := 0, time.Now(); i < all; i++ {
					s.enqueue(numbered("n"+strconv.Itoa(i%3), "k"+strconv.Itoa(i%60), i))
					if i == 0 {
						go func() { told <- s.toldOf("404 Not Found") }()
					}
					time.Sleep(time.Until(start.Add(time.Duration(i+1) * time.Second / rate)))
				}
				if d := <-told; d > 5*time.Second {
					t.Errorf("status names the cause after %v", d)
				} else {
					t.Logf("status names the cause after %v", d)
				}
				if n := s.count()[feeds.StatusDead]; n > 0 {
					t.Errorf("%d are dead", n)
				}
				up.Store(true)
				began := time.Now()
				s.eventually(time.Minute, "all have arrived", func() bool { n, _ := e.count(); return n == all })
				t.Logf("%d messages have arrived %v after the endpoint was there again", all, time.Since(began))
				e.checkOrder(t)
				if _, repeated := e.count(); repeated > 0 {
					t.Errorf("%d were repeated", repeated)
				}
				s.eventually(time.Minute, "nothing is deferred", func() bool { return len(s.count()) == 0 })
				s.eventually(10*time.Second, "the problem is over", func() bool { return !s.says("404 Not Found") })
			})
		})
	}
}

// toldOf returns how long it takes until status reports a cause.
func (s *scene) toldOf(cause string) time.Duration {
	began := time.Now()
	for time.Since(began) < 30*time.Second && !s.says(cause) {
		time.Sleep(100 * time.Millisecond)
	}
	return time.Since(began)
}

// says reports whether status and the database report a cause for which a destination accepts
// nothing.
func (s *scene) says(cause string) bool {
	problems, err := s.admin.Problems(s.t.Context(), "default")
	if err != nil {
		s.t.Error(err)
		return false
	}
	known := false
	for _, p := range problems {
		known = known || p.Over.IsZero() && strings.Contains(p.Cause, cause)
	}
	if !known {
		return false
	}
	var status struct {
		Feeds []struct {
			Problems []struct{ Kind, Text, Cause string }
		}
	}
	if err := json.Unmarshal(s.postrider("status", "--json"), &status); err != nil {
		s.t.Error(err)
		return false
	}
	for _, f := range status.Feeds {
		for _, p := range f.Problems {
			if p.Kind == "destination" && strings.Contains(p.Text, cause) {
				return true
			}
		}
	}
	return false
}

// TestRestartBehindFailing begins each shard with a message that never succeeds. Clean restarts
// under load cause no duplicates.
func TestRestartBehindFailing(t *testing.T) {
	t.Parallel()
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{Shards: 4})
		e := newEndpoint(t, func(_, body string) int {
			if strings.HasPrefix(body, "bad") {
				return http.StatusInternalServerError
			}
			return 0
		})
		for i := range 40 { // some for each shard
			s.enqueue(numbered("", "bad"+strconv.Itoa(i), 0))
		}
		sent := 0
		cfg := relay.Config{Retry: retry.Policy{First: time.Second, Attempts: 100}}
		for range pick(4, 10) {
			stop := s.start(e.sender(t, ""), cfg)
			for began := time.Now(); time.Since(began) < pick(700*time.Millisecond, 2*time.Second); time.Sleep(5 * time.Millisecond) {
				var msgs []postrider.Message
				for range 10 {
					msgs = append(msgs, numbered("", "k"+strconv.Itoa(sent%500), sent))
					sent++
				}
				s.enqueue(msgs...)
			}
			began := time.Now()
			stop()
			if took := time.Since(began); took > 8*time.Second {
				t.Errorf("a clean stop took %v", took)
			}
		}
		s.start(e.sender(t, ""), cfg)
		s.eventually(time.Minute, "all others have arrived", func() bool { n, _ := e.count(); return n == sent })
		e.checkOrder(t)
		_, repeated := e.count()
		t.Logf("%d messages, %d repeated", sent, repeated)
		if repeated > 0 {
			t.Errorf("%d were repeated", repeated)
		}
	})
}

// TestHeldOverRestart checks that messages held for a name stay held over a restart of the relay,
// which begins with a probe and not with all of them. Operator commands apply to held messages:
// when the first message of a key is parked, the next one follows.
func TestHeldOverRestart(t *testing.T) {
	t.Parallel()
	built.Program(t, "cmd/postrider")
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{Shards: 2})
		var up atomic.Bool
		var tried atomic.Int64
		e := newEndpoint(t, func(name, _ string) int {
			if name == "down" && !up.Load() {
				tried.Add(1)
				return http.StatusServiceUnavailable
			}
			return 0
		})
		const keys, each = 10, 20
		stop := s.start(e.sender(t, "/{name}"), relay.Config{})
		for i := range keys * each {
			s.enqueue(numbered("down", "d"+strconv.Itoa(i%keys), i), numbered("fine", "f"+strconv.Itoa(i%keys), i))
		}
		deferred := func() (n int) {
			for _, m := range s.count() {
				n += m
			}
			return n
		}
		s.eventually(30*time.Second, "the ones of the name are deferred", func() bool { n, _ := e.count(); return n == keys*each && deferred() == keys*each })
		stop()
		before := tried.Load()
		stop = s.start(e.sender(t, "/{name}"), relay.Config{})
		for i := range keys {
			s.enqueue(numbered("down", "d"+strconv.Itoa(i), keys*each+i), numbered("fine", "f"+strconv.Itoa(i), keys*each+i))
		}
		s.eventually(30*time.Second, "the new ones are deferred too", func() bool {
			n, _ := e.count()
			return n == keys*(each+1) && deferred() == keys*(each+1)
		})
		if n := tried.Load() - before; n > 50 {
			t.Errorf("%d messages of the held name were sent after the restart, want a few probes", n)
		}
		for _, word := range []string{"retry", "park"} {
			out := s.postrider("keys", word, "parcel/d3", "--reason", "a test", "--yes", "--json")
			var done struct{ Count int }
			if err := json.Unmarshal(out, &done); err != nil || done.Count != 1 {
				t.Errorf("keys %s: %s, %v", word, out, err)
			}
		}
		s.eventually(30*time.Second, "one is parked", func() bool { return s.count()[feeds.StatusParked] == 1 })
		stop()
		up.Store(true)
		s.start(e.sender(t, "/{name}"), relay.Config{})
		s.eventually(30*time.Second, "all but the parked one have arrived", func() bool { n, _ := e.count(); return n == 2*keys*(each+1)-1 })
		e.checkOrder(t)
		if got := e.numbers("d3"); got[0] != keys+3 {
			t.Errorf("the first of the key that has arrived is %d, want the second one, %d", got[0], keys+3)
		}
		if _, repeated := e.count(); repeated > 0 {
			t.Errorf("%d were repeated", repeated)
		}
		s.eventually(30*time.Second, "the parked one alone is deferred", func() bool { return deferred() == 1 && s.count()[feeds.StatusParked] == 1 })
	})
}
