package classic_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/classic"
	"github.com/postrider/postrider/store/transactor"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	adopted := classic.Layout{Table: "outbox"}
	_, err := classic.Open(nil, classic.Config{
		Dialect: classic.PostgreSQL, Layout: adopted, Transactor: transactor.Config{Isolation: sql.LevelSnapshot}, PurgeChunk: -1,
	})
	for _, want := range []string{"db is nil", "store/postgres", "OpenTable", "Isolation", "PurgeChunk"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
