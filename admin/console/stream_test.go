package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/store/feeds"
)

// reading is a stream of events.
type reading struct {
	t      *testing.T
	body   io.Closer
	lines  *bufio.Scanner
	status int
}

func (s *scene) follow(path, last string) *reading {
	s.t.Helper()
	r := must(http.NewRequest("GET", s.url+"/api/v1"+path, nil)) // its end is the server's
	r.Header.Set("Authorization", "Bearer "+tokens[auth.Viewer])
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	return &reading{s.t, answer.Body, bufio.NewScanner(answer.Body), answer.StatusCode}
}

// next returns the next event of that name, or false at the end.
func (r *reading) next(name string, out any) (id string, more bool) {
	r.t.Helper()
	event := ""
	for r.lines.Scan() {
		switch field, value, _ := strings.Cut(r.lines.Text(), ": "); field {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			if event == name {
				if err := json.Unmarshal([]byte(value), out); err != nil {
					r.t.Fatal(err)
				}
				return id, true
			}
		case "":
			id, event = "", ""
		}
	}
	return "", false
}

// TestEvents follows samples, comes again and gets what it has missed, and is let go when the console ends.
func TestEvents(t *testing.T) {
	before := runtime.NumGoroutine()
	var ended sync.WaitGroup
	t.Run("stream", func(t *testing.T) {
		s := inMemory(t)
		s.enqueue(good(3)...)
		s.relay(0)
		first := s.follow("/events", "")
		var sample live.Sample
		id, _ := first.next("sample", &sample)
		if n, err := strconv.ParseInt(id, 10, 64); err != nil || n != sample.T {
			t.Errorf("the ID %q is not the time %d", id, sample.T)
		}
		var o api.Overview
		first.next("overview", &o)
		var later live.Sample
		first.next("sample", &later)
		first.next("sample", &later)
		_ = first.body.Close()
		again := s.follow("/events", id)
		for want := sample.T + 1; want <= later.T; want++ {
			var missed live.Sample
			if again.next("sample", &missed); missed.T < want {
				t.Errorf("got the sample of %d after that of %d", missed.T, want-1)
			}
			want = missed.T
		}
		if err := s.db.Feeds.AddFeed(t.Context(), admin.By{Who: "test"}, "audit", false); err != nil {
			t.Fatal(err)
		}
		for more := true; more && len(o.Feeds) < 2; {
			_, more = again.next("overview", &o)
		}
		var many []*reading
		for range 8 {
			many = append(many, s.follow("/events", ""))
		}
		if last := many[7]; last.status != http.StatusServiceUnavailable {
			t.Errorf("too many of one client: %d", last.status)
		}
		for _, r := range append(many, again) {
			ended.Go(func() {
				for r.lines.Scan() {
				}
				_ = r.body.Close()
			})
		}
	})
	ended.Wait() // all streams end with the console
	http.DefaultClient.CloseIdleConnections()
	for end := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines before, now\n%s", before, stacks[:runtime.Stack(stacks, true)])
		}
	}
}

// TestTail follows the log.
func TestTail(t *testing.T) {
	s := onPostgres(t)
	if err := s.db.Feeds.AddFeed(t.Context(), admin.By{Who: "test"}, "default", true); err != nil {
		t.Fatal(err)
	}
	tail := s.follow("/messages/tail?type=order.placed", "")
	all := append(good(2), bad(1)...)
	s.enqueue(all...)
	for i := range 2 {
		var row api.LogRow
		if _, more := tail.next("message", &row); !more || row.ID != all[i].ID.String() {
			t.Fatalf("got %+v, want %s", row, all[i].ID)
		}
	}
	s.enqueue(good(1)...)
	var row api.LogRow
	if tail.next("message", &row); row.ID == all[1].ID.String() || row.Type != "order.placed" {
		t.Errorf("got %+v", row)
	}
	s.relay(1) // a row comes again when it says something else
	for published := map[string]bool{}; len(published) < 3; {
		if _, more := tail.next("message", &row); !more {
			t.Fatal("the tail has ended")
		}
		if row.Status == feeds.StatusPublished {
			published[row.ID] = true
		}
	}
}

// TestLatency shows the times that the observer has measured.
func TestLatency(t *testing.T) {
	s := inMemory(t)
	pub := broker.ObservePublisher("default", picky{}, s.console.Observer())
	var series live.Series
	s.await("a percentile", func() bool {
		pub.Publish(context.Background(), good(10))
		s.wants(auth.Viewer, "GET", "/series", nil, &series)
		for _, p := range series.P99 {
			if p.Known() && p < 1 {
				return true
			}
		}
		return false
	})
}
