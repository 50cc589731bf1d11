package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestBudgetOfConnections carries messages of three databases with six connections.
func TestBudgetOfConnections(t *testing.T) {
	t.Parallel()
	server := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES15"))
	const budget, each = 6, 500
	application := fmt.Sprintf("budget_%d", os.Getpid())
	var config strings.Builder
	config.WriteString("connections: 6\ndestinations: {screen: {url: 'stdout:'}}\n")
	databases, feeds := "databases:\n", "feeds:\n"
	for i := range 3 {
		name := fmt.Sprintf("%s_%d", application, i)
		quoted := pgx.Identifier{name}.Sanitize()
		server.exec("CREATE DATABASE " + quoted)
		t.Cleanup(func() {
			if _, err := server.pool.Exec(context.Background(), "DROP DATABASE "+quoted+" WITH (FORCE)"); err != nil {
				t.Error(err)
			}
		})
		c := newCLI(t, otherDatabase(t, server.dsn, name))
		c.must("migrate", "up")
		c.enqueue(each)
		databases += fmt.Sprintf("  db%d: {url: %q, schema: %s}\n", i, c.dsn+" application_name="+application, c.schema)
		for _, feed := range []string{"a", "b"} { // two that share a database
			feeds += fmt.Sprintf("  %s%d: {database: db%d, create: oldest}\n", feed, i, i)
		}
	}
	config.WriteString(databases + feeds)
	r := startRelay(t, "--config", writeConfig(t, config.String()))
	most := 0
	r.until("everything has arrived", func() bool {
		var n int
		err := server.pool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1", application).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
		return strings.Count(r.out.String(), "\n") >= 3*2*each
	})
	r.end()
	if most > budget || most < 3 {
		t.Errorf("%d connections, want at most %d", most, budget)
	}
	if n := strings.Count(r.out.String(), "\n"); n != 3*2*each {
		t.Errorf("%d messages", n)
	}
}

// otherDatabase is the address of another database of the same server, as key=value pairs.
func otherDatabase(t *testing.T, dsn, name string) string {
	t.Helper()
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("host=%s port=%d user=%s password='%s' dbname=%s sslmode=disable", cfg.Host, cfg.Port, cfg.User, cfg.Password, name)
}

func TestBudgetTooSmall(t *testing.T) {
	t.Parallel()
	text := strings.Replace(smallConfig, "databases:\n", "connections: 3\ndatabases:\n  more: {url: host=h}\n", 1) +
		"  more: {database: more, destination: spare}\n"
	text = strings.Replace(text, "  default:\n", "  default:\n    database: app\n", 1)
	path := writeConfig(t, text)
	r := offline(t, "relay", "--config", path)
	if r.code != exitUsage || !strings.Contains(r.err, path+":1:14: connections: connections (3) is less than the 4 that 2 databases need") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
