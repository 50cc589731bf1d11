package examples

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// language is a service without any library of ours, with the commands of its README.
type language struct {
	folder    string
	needs     string   // file that lists its dependencies
	installed string   // exists once they are installed
	install   []string // commands
	run       string
	prices    int // number of messages that it writes with COPY
}

var languages = []language{
	{
		folder: "orders-python", needs: "requirements.txt", installed: ".venv",
		install: []string{"python3 -m venv .venv", ".venv/bin/pip install --quiet --requirement requirements.txt"},
		run:     ".venv/bin/python orders.py",
		prices:  100,
	},
	{
		folder: "orders-typescript", needs: "package.json", installed: "node_modules",
		install: []string{"npm install --no-save --loglevel error"},
		run:     "npm run --silent build && npm run --silent start",
	},
	{
		folder: "orders-java", needs: "pom.xml", installed: "lib",
		install: []string{"mvn --quiet --batch-mode dependency:copy-dependencies"},
		run:     "java -cp 'lib/*' Orders.java",
	},
}

// TestLanguages checks that messages that services in other languages commit with plain SQL arrive
// unchanged and in order per key, and that rolled back and duplicate messages do not.
func TestLanguages(t *testing.T) {
	for _, l := range languages {
		t.Run(strings.TrimPrefix(l.folder, "orders-"), func(t *testing.T) {
			t.Parallel()
			address := pgtest.Database(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
			pool := pgtest.Pool(t, address)
			db, err := postgres.Open(pool, postgres.Config{})
			if err != nil {
				t.Fatal(err)
			}
			migrator, err := db.Migrator(postgres.Layout{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := migrator.Up(t.Context()); err != nil {
				t.Fatal(err)
			}

			l.prepare(t)
			out := l.command(t, l.run, "DATABASE_URL="+address, "JDBC_URL="+jdbc(t, address))
			want := "saddle: ordered\nbridle: ordered\nbridle: sold out\npaid twice: false"
			if got := strings.TrimSpace(out); !strings.EqualFold(got, want) { // Python prints False
				t.Errorf("it said\n%s\nwant\n%s", got, want)
			}
			l.compare(t, pool, db.Feeds())
		})
	}
}

// prepare installs the dependencies, unless those of the current list are installed.
func (l language) prepare(t *testing.T) {
	t.Helper()
	needs, err := os.ReadFile(filepath.Join(l.folder, l.needs))
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(l.folder, l.installed, ".installed")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, needs) {
		return
	}
	for _, command := range l.install {
		l.command(t, command)
	}
	if err := os.WriteFile(stamp, needs, 0o644); err != nil {
		t.Fatal(err)
	}
}

// command runs a command in the folder of the example, and returns its output.
func (l language) command(t *testing.T, command string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // the first run downloads
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = l.folder
	cmd.Env = append(os.Environ(), env...)
	var messages bytes.Buffer
	cmd.Stderr = &messages
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", command, err, out, messages.String())
	}
	return string(out)
}

// jdbc converts a URL to the form that Java expects.
func jdbc(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("user", u.User.Username())
	if password, ok := u.User.Password(); ok {
		query.Set("password", password)
	}
	return "jdbc:postgresql://" + u.Host + u.Path + "?" + query.Encode()
}

// arrival is what the test compares of a message.
type arrival struct {
	kind    string
	payload map[string]any
	channel string
	dedup   string
}

// compare relays everything, and compares what arrives with the orders in the database.
func (l language) compare(t *testing.T, pool *pgxpool.Pool, store feeds.Store) {
	t.Helper()
	want, total := l.expected(t, pool)
	got := deliver(t, pool, store, total)
	if keys, arrived := sortedKeys(want), sortedKeys(got); !slices.Equal(keys, arrived) {
		t.Fatalf("messages of %q arrived, want those of %q", arrived, keys)
	}
	for key := range want {
		if a, b := fmt.Sprint(got[key]), fmt.Sprint(want[key]); a != b {
			t.Errorf("of %s arrived\n%s\nwant\n%s", key, a, b)
		}
	}
}

// expected returns the messages that must arrive according to the rows of the orders, by key.
func (l language) expected(t *testing.T, pool *pgxpool.Pool) (want map[string][]arrival, total int) {
	t.Helper()
	rows, err := pool.Query(t.Context(), "SELECT id::int, item, cents, status FROM orders ORDER BY id")
	if err != nil {
		t.Fatal(err)
	}
	type order struct {
		ID, Cents    int
		Item, Status string
	}
	orders, err := pgx.CollectRows(rows, pgx.RowToStructByName[order])
	if err != nil {
		t.Fatal(err)
	}
	if len(orders) != 52 {
		t.Fatalf("there are %d orders, want 52", len(orders))
	}
	want = make(map[string][]arrival)
	for _, o := range orders {
		id := float64(o.ID)
		channel := "web"
		if o.Item == "horseshoe" {
			channel = "import"
		}
		payment := fmt.Sprintf("bank-%d", o.ID)
		way := []arrival{
			{"order.placed", map[string]any{"id": id, "item": o.Item, "cents": float64(o.Cents)}, channel, ""},
			{"order.paid", map[string]any{"id": id, "payment": payment}, "", "payment:" + payment},
			{"order.shipped", map[string]any{"id": id}, "", ""},
		}
		steps := 1 + slices.Index([]string{"placed", "paid", "shipped"}, o.Status)
		want[fmt.Sprintf("order/%d", o.ID)] = way[:steps]
		total += steps
	}
	for size := range l.prices {
		item := fmt.Sprintf("horseshoe-%d", size)
		payload := map[string]any{"item": item, "cents": float64(700 + size)}
		want["item/"+item] = []arrival{{"price.changed", payload, "", ""}}
		total++
	}
	return want, total
}

// deliver relays the messages in the log, whose number must be total, and returns what has arrived,
// by key.
func deliver(t *testing.T, pool *pgxpool.Pool, store feeds.Store, total int) map[string][]arrival {
	t.Helper()
	var held int
	if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM postrider.messages").Scan(&held); err != nil {
		t.Fatal(err)
	}
	if held != total {
		t.Errorf("the log holds %d messages, want %d", held, total)
	}
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	var mu sync.Mutex
	count, got := 0, make(map[string][]arrival)
	r, err := relay.New(store, postrider.PublisherFunc(func(_ context.Context, m postrider.Message) error {
		mu.Lock()
		defer mu.Unlock()
		var payload map[string]any
		if err := json.Unmarshal(m.Payload, &payload); err != nil || m.ContentType != "application/json" {
			t.Errorf("%s %s: %v", m.ContentType, m.Payload, err)
		}
		got[m.OrderKey()] = append(got[m.OrderKey()], arrival{m.Type, payload, m.Headers["channel"], m.DedupKey})
		if count++; count == held {
			stop()
		}
		return nil
	}), relay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if count != held {
		t.Errorf("%d messages arrived of %d", count, held)
	}
	return got
}

func sortedKeys(m map[string][]arrival) []string { return slices.Sorted(maps.Keys(m)) }
