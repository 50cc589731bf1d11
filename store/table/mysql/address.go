package mysql

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"
)

const dialTimeout = 10 * time.Second

// IsURL reports whether an address leads to MySQL or MariaDB.
func IsURL(address string) bool {
	return strings.HasPrefix(address, "mysql://") || strings.HasPrefix(address, "mariadb://")
}

// ParseURL reads an address such as mysql://user:password@host:3306/database for the driver. What it returns is safe to be used:
// statements come one by one, and away from this machine the server must show a certificate for its name. Parameters are tls
// (verify, skip-verify or off), tls_ca (a file with certificates), and socket (a path, instead of a host). Errors do not
// repeat the address, which may hold a password.
func ParseURL(address string) (*driver.Config, error) {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || !IsURL(address) {
		return nil, errors.New("mysql: this is not an address such as mysql://user@host:3306/database")
	}
	cfg := driver.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	cfg.Net, cfg.Addr = "tcp", net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "3306"))
	cfg.Timeout = dialTimeout
	cfg.InterpolateParams = true // one round trip for each statement
	cfg.RejectReadOnly = true    // after a failover, the old primary is left
	cfg.Logger = &driver.NopLogger{}
	cfg.Params = map[string]string{"autocommit": "1"} // a server may have it off
	if cfg.DBName == "" {
		return nil, errors.New("mysql: the address names no database: add /DATABASE behind the host")
	}
	query := u.Query()
	for name := range query {
		if name != "tls" && name != "tls_ca" && name != "socket" {
			return nil, fmt.Errorf("mysql: the address has the parameter %q: there are tls, tls_ca and socket", name)
		}
	}
	if socket := query.Get("socket"); socket != "" {
		cfg.Net, cfg.Addr = "unix", socket
	}
	return cfg, secure(cfg, u.Hostname(), query.Get("tls"), query.Get("tls_ca"))
}

// OpenURL opens an address as [ParseURL] reads it. It connects when it is used.
func OpenURL(address string) (*sql.DB, error) {
	cfg, err := ParseURL(address)
	if err != nil {
		return nil, err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql: %w", err)
	}
	db := sql.OpenDB(connector)
	db.SetConnMaxLifetime(30 * time.Minute) // servers behind a name may change
	return db, nil
}

// secure sets up encryption. Without a word about it, only what stays on this machine goes without.
func secure(cfg *driver.Config, host, mode, authorities string) error {
	if mode == "" {
		mode = "verify"
		if authorities == "" && (cfg.Net == "unix" || host == "" || isLoopback(host)) {
			mode = "off"
		}
	}
	switch mode {
	case "off":
		if authorities != "" {
			return errors.New("mysql: tls=off and tls_ca contradict each other")
		}
		return nil
	case "verify", "skip-verify":
	default:
		return fmt.Errorf("mysql: tls is %q: want verify, skip-verify or off", mode)
	}
	cfg.TLS = &tls.Config{
		MinVersion: tls.VersionTLS12, ServerName: host,
		InsecureSkipVerify: mode == "skip-verify", //nolint:gosec // the user says so
	}
	if authorities == "" {
		return nil
	}
	pem, err := os.ReadFile(authorities) //nolint:gosec // the user says which file
	if err != nil {
		return fmt.Errorf("mysql: tls_ca: %w", err)
	}
	cfg.TLS.RootCAs = x509.NewCertPool()
	if !cfg.TLS.RootCAs.AppendCertsFromPEM(pem) {
		return fmt.Errorf("mysql: tls_ca: there is no certificate in %s", authorities)
	}
	return nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
