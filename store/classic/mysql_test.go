package classic_test

import (
	"os"
	"os/exec"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

// TestMySQL runs all tests of MariaDB with MySQL: what both document is not always what both do.
func TestMySQL(t *testing.T) {
	need.Long(t, "all tests of MariaDB again")
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^Test", "-test.skip", "^TestMySQL$|TestReadsLookAtFewRows|/pg1[0-9]$", "-test.timeout", "20m")
	cmd.Env = append(os.Environ(), "POSTRIDER_LONG=", "POSTRIDER_TEST_MARIADB="+need.Env(t, "POSTRIDER_TEST_MYSQL", "mysql"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
