package cli

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"strings"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/cmd/postrider/internal/throwaway"
)

// pgVariables are the PostgreSQL variables that name a server or a database.
var pgVariables = []string{"PGHOST", "PGHOSTADDR", "PGSERVICE"}

// databaseGiven reports whether the user has named a database.
func (a *app) databaseGiven() bool { return a.databaseFrom() != "" }

// databaseFrom returns the flag or variable that names the user's database.
func (a *app) databaseFrom() string {
	if a.db.dsn != "" {
		return "--dsn"
	}
	for _, name := range append([]string{"POSTRIDER_DSN", "DATABASE_URL"}, pgVariables...) {
		if os.Getenv(name) != "" {
			return "$" + name
		}
	}
	return ""
}

// confirmDatabase asks before the relay uses a database on another machine, which may be served by
// real relays.
func (a *app) confirmDatabase(d danger) error {
	cfg, err := a.db.config()
	if err != nil {
		return err
	}
	host := cfg.ConnConfig.Host
	address, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasPrefix(host, "/") || err == nil && address.IsLoopback() {
		return nil
	}
	return a.confirm(d, fmt.Sprintf("The database that %s names is on another machine, %s. Lay out the log in schema %s there, and take the messages of feed default?",
		a.databaseFrom(), host, a.db.schema))
}

// startThrowaway starts a PostgreSQL server of this command's own.
func (a *app) startThrowaway(ctx context.Context, o devOptions, fixed bool) (*throwaway.Server, error) {
	server, err := throwaway.Start(ctx, throwaway.Options{
		Programs: o.programs, Places: o.places, Port: o.port, Fixed: fixed, Keep: o.keep,
		Note: func(text string) { a.notef("%s", text) },
	})
	if errors.Is(err, throwaway.ErrNone) {
		return nil, hintedError{err, "to install it: " + installCommand() + "\n" +
			"or to run it in a container: docker run --rm -e POSTGRES_PASSWORD=dev -p 127.0.0.1:5432:5432 postgres:18\n" +
			"and then: " + a.self("dev --dsn postgres://postgres:dev@127.0.0.1:5432/postgres")}
	}
	return server, err
}

// installCommand returns a command that installs PostgreSQL on this machine.
func installCommand() string {
	for _, c := range [][2]string{
		{"brew", "brew install postgresql@18"},
		{"apt-get", "sudo apt-get install postgresql"},
		{"dnf", "sudo dnf install postgresql-server"},
		{"apk", "sudo apk add postgresql"},
		{"pacman", "sudo pacman -S postgresql"},
	} {
		if _, err := exec.LookPath(c[0]); err == nil {
			return c[1]
		}
	}
	return "see https://www.postgresql.org/download/"
}

// hintDev suggests how to do without an unreachable database.
func (a *app) hintDev(err error, server *throwaway.Server) error {
	if from := a.databaseFrom(); server == nil && isUnreachable(err) && strings.HasPrefix(from, "$") {
		return hintedError{err, "for a PostgreSQL of its own: unset " + strings.TrimPrefix(from, "$")}
	}
	return err
}

// welcome prints what is running, and commands to try.
func (a *app) welcome(o devOptions, server *throwaway.Server) {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	if server != nil {
		after := "removed at the end"
		if server.Kept {
			after = "kept for the next start"
		}
		line("%s on port %d, data in %s: %s; fsync is off, not for production", server.Program, server.Port, server.Folder, after)
		line("  export DATABASE_URL='%s'", server.URL)
	}
	if o.console != "" {
		line("the console is at http://%s/", o.console)
	}
	if o.to == "stdout:" {
		line("messages are printed here; Ctrl-C stops")
	} else {
		line("messages go to %s; Ctrl-C stops", config.RedactURL(o.to))
	}
	line("")
	line("In another terminal:")
	if server != nil {
		line(`  export DATABASE_URL="$(%s)"`, a.self("dev url"))
	}
	line("  %s order.placed --aggregate order/42 --payload '{\"total\": 7}'", a.self("enqueue"))
	if _, err := exec.LookPath("psql"); err == nil && (server != nil || os.Getenv("DATABASE_URL") != "") {
		line(`  psql "$DATABASE_URL" -c "SELECT %s('order.placed', 'order', '42', '{\"total\": 8}')"`, strings.ReplaceAll(a.db.in("@schema@.enqueue"), `"`, ""))
	}
	a.say(text.String() + "\n")
}
