package classic_test

import (
	"database/sql"
	"testing"

	"github.com/postrider/postrider/saga/sagatest"
	"github.com/postrider/postrider/store/classic"
)

func TestSagas(t *testing.T) {
	t.Parallel()
	db := newMariaDB(t)
	own := must(classic.Open(db, mysqlConfig))(t)
	sagas, records := own.Sagas(), own.Admin()
	t.Run("suite", func(t *testing.T) {
		sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
			return sagatest.Harness[*sql.Tx]{Store: sagas, Admin: own.SagaAdmin(), Records: records}
		})
	})
}
