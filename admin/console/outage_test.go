package console_test

import (
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/admin/console/auth"
	"github.com/postrider/postrider/admin/console/internal/api"
	"github.com/postrider/postrider/store/feeds"
)

// TestOutages: a feed's page shows what is wrong with its destination, as relays have reported it, and no secrets with it.
func TestOutages(t *testing.T) {
	for name, open := range map[string]func(*testing.T) *scene{
		"memory":   func(t *testing.T) *scene { return inMemory(t) },
		"postgres": func(t *testing.T) *scene { return onPostgres(t) },
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			feed := must(s.store.Open(t.Context(), "default", feeds.Member{Name: "test", Lease: time.Minute}))
			report := func(problems ...feeds.Problem) {
				t.Helper()
				if err := feed.(feeds.Reporter).Report(t.Context(), problems); err != nil {
					t.Fatal(err)
				}
			}
			report(feeds.Problem{Name: "orders", Failures: 3, Cause: "queue is full"})
			report(feeds.Problem{Name: "payments", Failures: 1, Cause: "no route"},
				feeds.Problem{Failures: 2, Cause: "dial amqp://ann:geheim@broker: refused"})
			report(feeds.Problem{Name: "payments"})
			s.await("the console's look at the feed", func() bool {
				status, _ := s.raw(auth.Viewer, "GET", "/feeds/default", nil)
				return status == 200
			})
			var f api.FeedDetail
			s.wants(auth.Viewer, "GET", "/feeds/default", nil, &f)
			if len(f.Outages) != 3 || f.Outages[2].Name != "payments" || f.Outages[2].Over.IsZero() {
				t.Fatalf("the outages are %+v, want the one that is over last", f.Outages)
			}
			for _, o := range f.Outages[:2] {
				if !o.Over.IsZero() || time.Since(o.Since).Abs() > time.Minute || o.Last.Before(o.Since) || strings.Contains(o.Cause, "geheim") ||
					o.Name == "orders" && (o.Failures != 3 || o.Cause != "queue is full") {
					t.Errorf("an outage is %+v", o)
				}
			}
		})
	}
}
