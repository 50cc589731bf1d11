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
	sagas := need(classic.NewSagas(db, mysqlConfig))(t)
	records := need(classic.NewDesk(db, mysqlConfig))(t)
	t.Run("suite", func(t *testing.T) {
		sagatest.Run(t, func(*testing.T) sagatest.Harness[*sql.Tx] {
			return sagatest.Harness[*sql.Tx]{Store: sagas, Desk: sagas, Records: records}
		})
	})
}
