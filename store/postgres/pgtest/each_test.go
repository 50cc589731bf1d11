package pgtest_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestEach runs itself again without PostgreSQL 15: in CI, that test fails and those of 18 still
// run.
func TestEach(t *testing.T) {
	const child = "POSTRIDER_TEST_EACH"
	if os.Getenv(child) != "" {
		pgtest.Each(t, func(*testing.T, string) {})
		return
	}
	t.Parallel()
	cmd := exec.Command(os.Args[0], "-test.run=^TestEach$", "-test.v")
	cmd.Env = append(os.Environ(), child+"=1", "CI=true", "POSTRIDER_POSTGRES=", "POSTRIDER_TEST_POSTGRES15=", "POSTRIDER_TEST_POSTGRES18=somewhere")
	out, err := cmd.CombinedOutput()
	for _, want := range []string{"--- FAIL: TestEach/pg15", "--- PASS: TestEach/pg18", "dev/services up"} {
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q in\n%s", err, want, out)
		}
	}
}
