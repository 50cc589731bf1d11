package alerts_test

import (
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/alerts/dashboard"
	"github.com/postrider/postrider/test/built"
)

// relayProcess runs the real command.
type relayProcess struct {
	cmd     *exec.Cmd
	address string // of its health server
}

// startRelay serves one feed of a schema, with four canaries a second and the shortest useful
// lease.
func startRelay(t *testing.T, command, dsn, schema, feed string) *relayProcess {
	t.Helper()
	listens := make(chan string, 1)
	cmd := launch(t, listens, regexp.MustCompile(`relay: health" listen=(\S+)`), command, "relay", "--to", "discard:",
		"--dsn", dsn, "--schema", schema, "--feed", feed, "--create", "--from", "oldest",
		"--health", "127.0.0.1:0", "--canary", "250ms", "--lease", "3s")
	return &relayProcess{cmd, receive(t, listens)}
}

func (p *relayProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestStall suspends relays with SIGSTOP, as a frozen machine would, and resumes them. One is the
// only relay of its fleet: no relay reports the state of its feed any more, and the alert says so.
// The other has a neighbor that serves another feed of the same database, whose metrics report the
// stalled feed.
func TestStall(t *testing.T) {
	dsn := pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")
	pool := pgtest.Pool(t, dsn)
	program(t, "prometheus")
	command := built.Program(t, "cmd/postrider")
	shared := pgtest.Schema(t, pool, postgres.Layout{}).Schema
	lonely := pgtest.Schema(t, pool, postgres.Layout{}).Schema
	orders := startRelay(t, command, dsn, shared, "orders")
	audit := startRelay(t, command, dsn, shared, "audit")
	alone := startRelay(t, command, dsn, lonely, "orders")
	p := startPrometheus(t, hurried(t, 30, 5), map[string][]string{
		"postrider": {orders.address, audit.address}, "postrider-alone": {alone.address}})

	series := func(expr string) int {
		n, err := p.query(expr)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	eventually(t, "all is well", func() bool {
		return series("feed:postrider_canary_age_seconds:max < 3") == 3 && series("feed:postrider_feed_relays:max == 1") == 3 && !stalled(p.firing())
	})
	if _, err := pool.Exec(t.Context(), "SELECT "+shared+".enqueue('order.placed', 'order', n::text, '{}') FROM generate_series(1, 100) n"); err != nil {
		t.Fatal(err)
	}

	want := []string{
		"PostriderFeedStalled{postrider orders}",
		"PostriderNoRelay{postrider orders}",
		"PostriderRelayDown{postrider " + orders.address + "}",
		"PostriderRelayDown{postrider-alone " + alone.address + "}",
		"PostriderFiguresGone{postrider-alone }",
	}
	orders.signal(t, syscall.SIGSTOP)
	alone.signal(t, syscall.SIGSTOP)
	began := time.Now()
	var got map[string]bool
	eventually(t, "the alerts fire", func() bool {
		got = p.firing()
		return !slices.ContainsFunc(want, func(a string) bool { return !got[a] })
	})
	t.Logf("after %v: %q", time.Since(began), slices.Sorted(maps.Keys(got)))
	for a := range got {
		if about(a) && !slices.Contains(want, a) {
			t.Errorf("%s fires too", a)
		}
	}
	orders.signal(t, syscall.SIGCONT)
	alone.signal(t, syscall.SIGCONT)
	began = time.Now()
	eventually(t, "they are resolved", func() bool { return !stalled(p.firing()) })
	t.Logf("resolved after %v", time.Since(began))
	t.Run("dashboard", func(t *testing.T) { askAll(t, p) })
}

// about reports whether an alert is one that suspended relays may raise. Other alerts may have
// other causes, such as transactions of other tests.
func about(alert string) bool {
	name, _, _ := strings.Cut(alert, "{")
	return slices.Contains([]string{"PostriderFeedStalled", "PostriderNoRelay", "PostriderRelayDown", "PostriderFiguresGone",
		"PostriderDatabaseDown", "PostriderDatabaseUnreachable", "PostriderDestinationDown", "PostriderRelayPaused"}, name)
}

func stalled(fire map[string]bool) bool {
	return slices.ContainsFunc(slices.Collect(maps.Keys(fire)), about)
}

// askAll runs every query of the dashboard. Those about consumers, failures, problems and
// reconcilers have no result here, since none exist; all others must have one.
func askAll(t *testing.T, p *server) {
	empty := regexp.MustCompile(`consumer|reconciler|tenant!=""|ALERTS|replication_slot|_failures_|_problem_age_|deferred_messages.* > 0|total.* / `)
	for _, q := range dashboard.Queries() {
		n, err := p.query(strings.ReplaceAll(q, "[1m]", "[10s]"))
		if err != nil {
			t.Errorf("%s: %v", q, err)
		} else if n == 0 && !empty.MatchString(q) {
			t.Errorf("%s: no answer", q)
		}
	}
}
