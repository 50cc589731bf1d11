package mysql_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/table/mysql"
	"github.com/postrider/postrider/store/transactor"
)

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	_, err := mysql.Open(nil, mysql.Config{
		Transactor: transactor.Config{Isolation: sql.LevelSnapshot}, PurgeChunk: -1,
	})
	for _, want := range []string{"db is nil", "Isolation", "PurgeChunk"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}
