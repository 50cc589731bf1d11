package cli

import (
	"strings"
	"testing"
)

func TestScrub(t *testing.T) {
	t.Setenv("PGPASSWORD", "pgpass-secret")
	for _, address := range []string{
		"postgres://rider:p%40ss-secret@host/db",
		"postgres://rider:p@ss-secret@host/db",
		"host=h user=rider password=p@ss-secret",
		"host=h user=rider password='p@ss-secret'",
		"postgres://host/db?user=rider&password=p@ss-secret",
	} {
		d := database{dsn: address}
		for _, text := range []string{
			"cannot parse `" + address + "`: bad",
			`parse "` + address + `": bad`,
			"the server said: p@ss-secret is wrong for rider",
			"pgpass-secret",
		} {
			got := d.scrub(text)
			if strings.Contains(got, "secret") {
				t.Errorf("%s: a password is still in %q", address, got)
			}
		}
	}
	d := database{dsn: "postgres://rider:p%40ss-secret@host/db"}
	if got := d.scrub("rider at host/db"); got != "rider at host/db" {
		t.Errorf("a harmless text became %q", got)
	}
}
