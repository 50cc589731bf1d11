package sqltext

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	_ "github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// FuzzDialect puts names and words between quotes and asks the servers what they read: exactly that.
func FuzzDialect(f *testing.F) {
	for _, text := range []string{"orders", "o'r", `o"r`, "o`r", `o\`, `\'; DROP TABLE x; --`, "ö", "a b", "%s", "a;b", "''", "``", `""`, "-- ", "/*"} {
		f.Add(text)
	}
	servers := map[Dialect]*sql.DB{}
	for dialect, server := range map[Dialect][2]string{MySQL: {"mysql", "POSTRIDER_TEST_MARIADB"}, PostgreSQL: {"pgx", "POSTRIDER_TEST_POSTGRES15"}} {
		db, err := sql.Open(server[0], pgtest.Env(f, server[1]))
		if err != nil {
			f.Fatal(err)
		}
		f.Cleanup(func() { _ = db.Close() })
		servers[dialect] = db
	}
	f.Fuzz(func(t *testing.T, text string) {
		// What no server can hold, or would cut off, is not a question of quotes.
		if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || len(text) > 60 {
			return
		}
		for dialect, db := range servers {
			var word string
			if err := db.QueryRowContext(t.Context(), "SELECT "+dialect.Literal(text)).Scan(&word); err != nil || word != text {
				t.Errorf("%s: the word %q is read as %q, %v", dialect, text, word, err)
			}
			// Neither server has a column with no name, and MariaDB none that ends with a space.
			if text == "" || strings.TrimSpace(text) != text {
				continue
			}
			rows, err := db.QueryContext(t.Context(), "SELECT 1 AS "+dialect.Quote(text))
			if err != nil {
				t.Errorf("%s: the name %q: %v", dialect, text, err)
				continue
			}
			if names, err := rows.Columns(); err != nil || len(names) != 1 || names[0] != text {
				t.Errorf("%s: the name %q is read as %q, %v", dialect, text, names, err)
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil { //nolint:sqlclosecheck // one after the other
				t.Errorf("%s: the name %q: %v", dialect, text, err)
			}
		}
	})
}
