package mysql_test

import (
	"strings"
	"testing"

	"github.com/postrider/postrider/store/table/mysql"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		addr, user, password, db, name string
		encrypted, verified            bool
	}{
		"mysql://app:se%40cret@db.example/shop":           {"db.example:3306", "app", "se@cret", "shop", "db.example", true, true},
		"mariadb://app@127.0.0.1:3307/shop":               {"127.0.0.1:3307", "app", "", "shop", "", false, false},
		"mysql://app@[::1]/shop":                          {"[::1]:3306", "app", "", "shop", "", false, false},
		"mysql://app@localhost/shop?tls=verify":           {"localhost:3306", "app", "", "shop", "localhost", true, true},
		"mysql://app@db.example/shop?tls=skip-verify":     {"db.example:3306", "app", "", "shop", "db.example", true, false},
		"mysql://app@db.example/shop?tls=off":             {"db.example:3306", "app", "", "shop", "", false, false},
		"mysql://app@db.example/shop?socket=/run/my.sock": {"/run/my.sock", "app", "", "shop", "", false, false},
	} {
		cfg, err := mysql.ParseURL(address)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if cfg.Addr != want.addr || cfg.User != want.user || cfg.Passwd != want.password || cfg.DBName != want.db {
			t.Errorf("%s: %+v", address, cfg)
		}
		if (cfg.TLS != nil) != want.encrypted || cfg.TLS != nil && (cfg.TLS.InsecureSkipVerify == want.verified || cfg.TLS.ServerName != want.name) {
			t.Errorf("%s: TLS is %+v", address, cfg.TLS)
		}
		if !cfg.InterpolateParams || cfg.MultiStatements || cfg.AllowCleartextPasswords || cfg.AllowFallbackToPlaintext {
			t.Errorf("%s: %+v", address, cfg)
		}
	}
	for _, address := range []string{
		"postgres://app:secret@host/shop", "mysql://app:secret@host", "mysql://app:secret@host/shop?multiStatements=true",
		"mysql://app:secret@host:port/shop", "mysql://app:secret@host/shop?tls=maybe", "mysql://app:secret@host/shop?tls_ca=/nowhere",
		"mysql:app:secret@host/shop", "mysql://app:secret@host/shop?tls=off&tls_ca=x",
	} {
		_, err := mysql.ParseURL(address)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
}
