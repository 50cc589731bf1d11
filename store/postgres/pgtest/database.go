package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
)

var databases atomic.Int64

// Database creates an empty database on a server, for programs whose schemas have fixed names, and
// returns its address. It drops the database when the test ends, even if it is in use.
func Database(t testing.TB, server string) string {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d_%d_%s", os.Getpid(), databases.Add(1), slug(t.Name()))
	// Use separate connections: the test may run for long and restart the server.
	administer(t.Context(), t, server, "CREATE DATABASE "+name)
	t.Cleanup(func() { administer(context.Background(), t, server, "DROP DATABASE "+name+" WITH (FORCE)") })
	address.Path = "/" + name
	return address.String()
}

func administer(ctx context.Context, t testing.TB, server, sql string) {
	t.Helper()
	conn, err := pgx.Connect(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql); err != nil {
		t.Fatal(err)
	}
}
