package idempotency_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// arena is a database, a server process that is killed repeatedly, and a client that never gives
// up.
type arena struct {
	t      *testing.T
	pool   *pgxpool.Pool
	schema string
	client *http.Client
	url    string

	kills, requests, answers, broken, conflicts, failed, replays atomic.Int64
}

// enter starts a server that is killed after at most life responses and restarted, until the test
// ends.
func enter(t *testing.T, life int64, s settings) *arena {
	t.Helper()
	s.DSN = pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	pool := pgtest.Pool(t, s.DSN)
	s.Schema = pgtest.Schema(t, pool, postgres.Layout{}).Schema
	if _, err := pool.Exec(t.Context(), fmt.Sprintf(businessTable, s.Schema)); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	a := &arena{t: t, pool: pool, schema: s.Schema, url: "http://" + listener.Addr().String()}
	listener.Close() // the file keeps it open
	a.client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 512}}
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() {
		defer file.Close()
		for ctx.Err() == nil {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), variable+"="+string(text))
			cmd.Stderr = os.Stderr
			cmd.ExtraFiles = []*os.File{file}
			output, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Error(err)
				return
			}
			// The server lives for a number of responses, not for a time: on a busy machine it
			// might otherwise be killed before each first response.
			_, _ = output.Read(make([]byte, 1))
			ended := make(chan struct{})
			go func() { // it may kill itself
				_ = cmd.Wait()
				close(ended)
			}()
			until := a.answers.Load() + 1 + rand.N(life)
			for deadline := time.Now().Add(5 * time.Second); a.answers.Load() < until && ctx.Err() == nil && time.Now().Before(deadline); {
				if isClosed(ended) {
					break
				}
				time.Sleep(time.Millisecond)
			}
			time.Sleep(rand.N(20 * time.Millisecond)) // not always right after a response
			_ = cmd.Process.Kill()
			<-ended
			a.kills.Add(1)
		}
	})
	t.Cleanup(func() {
		stop()
		group.Wait()
	})
	return a
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// reply is a response to a client.
type reply struct {
	status                      int
	body, contentType, location string
}

// ask sends a request until it gets a final response, one that does not ask for a retry.
func (a *arena) ask(path, principal, key, body string) (reply, error) {
	for deadline := time.Now().Add(2 * time.Minute); ; {
		got, again, err := a.send(path, principal, key, body)
		if err != nil || !again {
			return got, err
		}
		if time.Now().After(deadline) {
			return got, fmt.Errorf("no answer for %s %s: %+v", path, key, got)
		}
		time.Sleep(rand.N(40 * time.Millisecond))
	}
}

func (a *arena) send(path, principal, key, body string) (got reply, again bool, err error) {
	r, err := http.NewRequest("POST", a.url+path, strings.NewReader(body))
	if err != nil {
		return got, false, err
	}
	r.GetBody = nil // otherwise net/http would itself retry a request that has a key
	r.Header.Set("Principal", principal)
	r.Header.Set("Idempotency-Key", key)
	a.requests.Add(1)
	response, err := a.client.Do(r)
	if err != nil {
		a.broken.Add(1)
		return got, true, nil
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		a.broken.Add(1)
		return got, true, nil
	}
	if response.Header.Get("Idempotency-Replayed") != "" {
		a.replays.Add(1)
	}
	got = reply{response.StatusCode, string(text), response.Header.Get("Content-Type"), response.Header.Get("Location")}
	switch got.status {
	case http.StatusConflict:
		if response.Header.Get("Retry-After") == "" {
			return got, false, fmt.Errorf("409 without Retry-After: %+v", got)
		}
		a.conflicts.Add(1)
		return got, true, nil
	case http.StatusInternalServerError, http.StatusServiceUnavailable:
		a.failed.Add(1)
		return got, true, nil
	}
	a.answers.Add(1)
	return got, false, nil
}

// volley sends a request several times concurrently, and returns the response that all of them got.
func (a *arena) volley(times int, path, principal, key, body string) (reply, error) {
	replies := make([]reply, times)
	errs := make([]error, times)
	var group sync.WaitGroup
	for i := range replies {
		group.Go(func() { replies[i], errs[i] = a.ask(path, principal, key, body) })
	}
	group.Wait()
	for i := range replies {
		if errs[i] != nil {
			return replies[i], errs[i]
		}
		if replies[i] != replies[0] {
			return replies[i], fmt.Errorf("%s of %s: two answers:\n%+v\n%+v", key, principal, replies[0], replies[i])
		}
	}
	return replies[0], nil
}

func (a *arena) report(start time.Time, keys int) {
	a.t.Logf("%d keys in %v: %d requests, %d broken by %d kills, %d times 409, %d times 500 or 503, %d replays", keys,
		time.Since(start).Round(time.Millisecond), a.requests.Load(), a.broken.Load(), a.kills.Load(), a.conflicts.Load(),
		a.failed.Load(), a.replays.Load())
}
