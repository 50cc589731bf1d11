package api

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/live"
	"github.com/postrider/postrider/admin/console/internal/source"
	"github.com/postrider/postrider/admin/console/redact"
	"github.com/postrider/postrider/store/feeds"
)

func server(t *testing.T, all ...source.Database) *Server {
	rules, err := redact.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{
		Databases: all, Payloads: auth.Operator, Redact: rules, Sample: 2 * time.Second, Meter: new(live.Meter),
		Scrub: strings.ToLower, Logger: slog.New(slog.DiscardHandler),
	})
}

func ask(s *Server, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", "/api/v1"+path, nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r.WithContext(auth.With(r.Context(), auth.Identity{Name: "ann", Role: auth.Viewer, Via: "local"})))
	return w
}

// gauges answer until they are broken.
type gauges struct {
	broken *atomic.Bool
	asked  *atomic.Int64
}

func (g gauges) Gauges(context.Context) (*admin.Standing, error) {
	if g.asked.Add(1); g.broken.Load() {
		return nil, errors.New("no connection")
	}
	return &admin.Standing{At: time.Now(), Feeds: []admin.FeedStanding{{Name: "orders"}}}, nil
}

func (gauges) Health(context.Context) (*admin.Health, error) { return &admin.Health{}, nil }

// TestElsewhere breaks a database that nobody looks at: a viewer of another one sees it within five seconds.
func TestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var whole, broken atomic.Bool
		var asked atomic.Int64
		s := server(t, source.Database{Name: "main", Gauges: gauges{&whole, &asked}}, source.Database{Name: "billing", Gauges: gauges{&broken, &asked}})
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { s.Run(ctx) })
		defer running.Wait()
		defer cancel()
		overview := func() (o Overview) {
			if err := json.Unmarshal(ask(s, "/overview").Body.Bytes(), &o); err != nil {
				t.Fatal(err)
			}
			return o
		}
		of := func(o Overview) (kinds string) {
			for _, e := range o.Elsewhere {
				kinds += e.Database + " " + e.Worst.Kind + "\n"
			}
			return kinds
		}
		for range 20 {
			overview()
			time.Sleep(time.Second)
		}
		if got := of(overview()); strings.Contains(got, "unreachable") {
			t.Errorf("before: %s", got)
		}
		broken.Store(true)
		time.Sleep(5 * time.Second)
		if got := of(overview()); !strings.Contains(got, "billing unreachable") {
			t.Errorf("5 s after the database broke: %q", got)
		}
		time.Sleep(2 * time.Minute)
		before := asked.Load()
		if time.Sleep(time.Minute); asked.Load()-before > 2*5 {
			t.Errorf("nobody looks, and they were asked %d times in a minute", asked.Load()-before)
		}
	})
}

// hanging never answers.
type hanging struct{ admin.DeadLetters }

func (hanging) List(ctx context.Context, _ admin.Filter, _ *feeds.Deferred, _ int) ([]feeds.Deferred, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestTimeLimit gives up on a database that does not answer.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, source.Database{Name: "main", DeadLetters: hanging{}})
		begun := time.Now()
		w := ask(s, "/dead")
		var f Failure
		if err := json.Unmarshal(w.Body.Bytes(), &f); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); w.Code != http.StatusServiceUnavailable || took != timeLimit || f.Next == "" || f.Type != "about:blank" {
			t.Errorf("%d after %v: %+v", w.Code, took, f)
		}
		if kind := w.Header().Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("it is %s", kind)
		}
	})
}

// TestDoctor asks once for many, and again after a while.
func TestDoctor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		s := server(t, source.Database{Name: "main", Doctor: func(context.Context) ([]source.Finding, error) {
			asked++
			time.Sleep(time.Second)
			return nil, nil
		}})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if w := ask(s, "/doctor"); w.Code != 200 || !strings.Contains(w.Body.String(), `"findings":[]`) {
					t.Errorf("%d %s", w.Code, w.Body)
				}
			})
		}
		all.Wait()
		if asked != 1 {
			t.Errorf("asked %d times by 10 at the same moment", asked)
		}
		time.Sleep(11 * time.Second)
		if ask(s, "/doctor"); asked != 2 {
			t.Errorf("asked %d times 11 s later", asked)
		}
	})
}

// TestTimeline puts all that is known in order of time.
func TestTimeline(t *testing.T) {
	at := func(s int) time.Time { return time.Unix(1_800_000_000+int64(s), 0).UTC() }
	steps := timeline(&Journey{
		Message: Message{OccurredAt: at(0)}, EnqueuedAt: at(1),
		Feeds: []Leg{
			{Feed: "default", Status: feeds.StatusDead, Attempts: 3, DeferredAt: at(2), TriedAt: at(5), LastError: "no"},
			{Feed: "audit", Status: feeds.StatusPublished, Settled: at(3)},
			{Feed: "inbox/billing", Status: feeds.StatusRetry, Attempts: 1, DeferredAt: at(6), TriedAt: at(7), AvailableAt: at(9)},
			{Feed: "late", Status: feeds.StatusPublished},
		},
		Receipts: []Receipt{{"mail", at(4)}},
		Records:  []AuditEntry{{At: at(8), Who: "ann", Action: "retry", Feed: "default"}},
	})
	var got []string
	for i, s := range steps {
		got = append(got, s.Kind+"@"+s.Where)
		if i > 0 && !s.At.IsZero() && s.At.Before(steps[i-1].At) {
			t.Errorf("%v comes after %v", s, steps[i-1])
		}
	}
	want := "occurred@ enqueued@ deferred@default published@audit received@mail attempt@default dead@default deferred@billing " +
		"attempt@billing acted@default due@billing published@late"
	if strings.Join(got, " ") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), want)
	}
}

// TestTrace reads the trace of a message.
func TestTrace(t *testing.T) {
	for header, want := range map[string]string{
		"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01": "0af7651916cd43dd8448eb211c80319c",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-<script>-b7ad6b7169203331-01":                         "",
		"":                                                        "",
	} {
		if got := traceOf(map[string]string{"Traceparent": header}); got != want {
			t.Errorf("%q: %q", header, got)
		}
	}
}

// TestCommand quotes what a shell would take for something else.
func TestCommand(t *testing.T) {
	d := &database{Database: &source.Database{Schema: "shop"}}
	for _, c := range [][2]string{
		{d.commandOn("keys retry", "-k", "--feed", "a b"), "postrider keys retry --feed 'a b' --schema shop -- -k"},
		{d.commandOn("keys retry", "$(rm -rf /)", whose("inbox/bill's")...), `postrider keys retry '$(rm -rf /)' --consumer 'bill'\''s' --schema shop`},
		{(&database{Database: &source.Database{}}).command("dead ls", ""), "postrider dead ls ''"},
		{(&database{Database: &source.Database{Name: "shop", Schema: "x"}, oneOfMany: true}).command("dead ls"), "postrider dead ls --database shop"},
	} {
		if c[0] != c[1] {
			t.Errorf("%s\nwant %s", c[0], c[1])
		}
	}
}

// TestCut keeps errors short, and scrubbed.
func TestCut(t *testing.T) {
	s := server(t, source.Database{Name: "main"})
	if text := s.shown(strings.Repeat("Ä", longest)); len(text) > longest+len("…") || !strings.HasPrefix(text, "ä") {
		t.Errorf("%d bytes, beginning with %q", len(text), text[:2])
	}
}
