package mysql_test

import (
	"database/sql"
	"testing"

	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/table/mysql"
)

func TestSagas(t *testing.T) {
	t.Parallel()
	db := newMariaDB(t)
	own := must(mysql.Open(db, mysql.Config{}))(t)
	sagas, records := own.Sagas(), own.Admin()
	t.Run("suite", func(t *testing.T) {
		sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
			return sagatest.Harness[*sql.Tx]{Store: sagas, Admin: own.SagaAdmin(), Records: records}
		})
	})
}
