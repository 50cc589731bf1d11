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

// Database makes an empty database on a server, for programs whose schemas have fixed names, and returns its address. It is dropped
// when the test ends, whoever uses it.
func Database(t testing.TB, server string) string {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("t%d_%d_%s", os.Getpid(), databases.Add(1), slug(t.Name()))
	// A connection for each: the test may end long after it began, and with the server restarted.
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
