package mysql_test

import (
	"testing"

	"github.com/postrider/postrider/store/table/tabletest"
)

func TestMySQL(t *testing.T) { tabletest.AgainOnMySQL(t, "") }
