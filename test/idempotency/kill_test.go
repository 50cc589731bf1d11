package idempotency_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
)

// TestKilledServer sends many keys, sixteen concurrent requests for each, to a server that is
// killed all the time. Each key has one effect, and all of its requests get the same response, byte
// for byte. Two users with the same keys get separate effects. Half of the keys go to a handler
// that runs in one transaction with its key, and half to one that completes its key in its own
// transaction.
func TestKilledServer(t *testing.T) {
	const times, at = 16, 20
	names, life := 150, int64(100)
	if need.IsLong() {
		names, life = 5000, 500
	}
	a := enter(t, life, settings{Lease: 500 * time.Millisecond, Slow: 4 * time.Millisecond, Crash: 0.02})
	start := time.Now()
	type job struct{ path, principal, key string }
	jobs := make(chan job)
	var mu sync.Mutex
	answers := make(map[job]effect)
	var group sync.WaitGroup
	for range at {
		group.Go(func() {
			for j := range jobs {
				got, err := a.volley(times, j.path, j.principal, j.key, "body of "+j.principal)
				var e effect
				if err == nil {
					err = json.Unmarshal([]byte(got.body), &e)
				}
				want := effect{e.ID, j.principal, j.key, "body of " + j.principal}
				if err != nil || got.status != http.StatusCreated || e != want || got.location != fmt.Sprint("/effects/", e.ID) ||
					got.contentType != "application/json" {
					t.Errorf("%+v: %+v, %v", j, got, err)
				}
				if got, err := a.ask(j.path, j.principal, j.key, "another body"); err != nil || got.status != http.StatusUnprocessableEntity {
					t.Errorf("%+v with another body: %+v, %v", j, got, err)
				}
				mu.Lock()
				answers[j] = e
				mu.Unlock()
			}
		})
	}
	for n := range names {
		path := []string{"/whole", "/complete"}[n%2]
		for _, principal := range []string{"ann", "bob"} {
			jobs <- job{path, principal, fmt.Sprintf("key-%d", n)}
		}
	}
	close(jobs)
	group.Wait()
	a.report(start, len(answers))

	rows, err := a.pool.Query(t.Context(), fmt.Sprintf("SELECT id, principal, route, key, body FROM %q.effects", a.schema))
	if err != nil {
		t.Fatal(err)
	}
	effects := 0
	for rows.Next() {
		var e effect
		var path string
		if err := rows.Scan(&e.ID, &e.Principal, &path, &e.Key, &e.Body); err != nil {
			t.Fatal(err)
		}
		effects++
		if told := answers[job{path, e.Principal, e.Key}]; told != e {
			t.Errorf("effect %+v; the clients were told of %+v", e, told)
		}
	}
	if err := rows.Err(); err != nil || effects != 2*names || len(answers) != 2*names {
		t.Errorf("%d effects and %d answers of %d keys, %v", effects, len(answers), 2*names, err)
	}
	if a.kills.Load() < 3 || a.broken.Load() == 0 {
		t.Errorf("only %d kills, which broke %d requests", a.kills.Load(), a.broken.Load())
	}
}

// TestKillsAreNoticed is the same with a handler that never completes its key. It must produce
// duplicate effects; otherwise the test above would prove nothing. It counts keys and not seconds: on a
// busy machine servers spend most of the time starting.
func TestKillsAreNoticed(t *testing.T) {
	const keys = 50 // every second server dies after its effect
	a := enter(t, 4, settings{Lease: 500 * time.Millisecond, Slow: 40 * time.Millisecond, Crash: 0.5})
	start := time.Now()
	for n := range keys {
		got, err := a.volley(4, "/plain", "ann", fmt.Sprintf("key-%d", n), "body")
		if err != nil {
			t.Log(err) // the responses of two effects
		} else if got.status != http.StatusCreated {
			t.Fatalf("%+v", got)
		}
		var repeated bool
		err = a.pool.QueryRow(t.Context(), fmt.Sprintf("SELECT count(*) > count(DISTINCT key) FROM %q.effects", a.schema)).Scan(&repeated)
		if err != nil {
			t.Fatal(err)
		}
		if repeated {
			a.report(start, n+1)
			return
		}
	}
	a.report(start, keys)
	t.Fatal("no effect was repeated")
}
