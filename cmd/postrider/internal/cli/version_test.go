package cli

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/store/postgres"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	r := offline(t, "version", "--json")
	b := decode[build](t, r.out)
	if r.code != exitOK || b.SchemaVersion != postgres.SchemaVersion() || b.Version == "" || !strings.HasPrefix(b.Go, "go") {
		t.Errorf("%+v", r)
	}
	if text := offline(t, "version").out; !strings.Contains(text, "schema") {
		t.Errorf("text: %s", text)
	}
	if flag := offline(t, "--version"); flag.code != exitOK || !strings.Contains(flag.out, b.Version) {
		t.Errorf("flag: %+v", flag)
	}
}
