package doctor

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
)

func TestVerified(t *testing.T) {
	for mode, want := range map[string]bool{
		"disable": false, "allow": false, "prefer": false, "require": false, "verify-ca": true, "verify-full": true, "": false,
	} {
		cfg, err := pgconn.ParseConfig("postgres://u@db.example.com/app?sslmode=" + mode)
		if mode == "" {
			cfg, err = pgconn.ParseConfig("postgres://u@db.example.com/app")
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := verified(cfg); got != want {
			t.Errorf("sslmode=%s: verified is %t", mode, got)
		}
	}
}

func TestStays(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "::1": true, "127.0.0.9": true, "10.0.0.1": false, "fd00::1": false} {
		if got := stays(&net.TCPAddr{IP: net.ParseIP(address)}); got != want {
			t.Errorf("%s: %t", address, got)
		}
	}
	if !stays(&net.UnixAddr{Name: "/run/postgresql"}) {
		t.Error("a socket leaves the machine")
	}
}
