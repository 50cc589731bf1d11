package main

import (
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The driver takes passwords out of its own messages; these are for everything else that may quote an address.
var (
	urlPassword = regexp.MustCompile(`(://[^:@/\s]*:)[^\s"]*@`)
	kvPassword  = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|[^\s&'"` + "`" + `]+)`)
)

// scrub takes passwords out of a text that may quote the address it came from.
func (d *database) scrub(text string) string {
	address := d.address()
	text = urlPassword.ReplaceAllString(text, "${1}xxxxx@")
	text = kvPassword.ReplaceAllString(text, "${1}xxxxx")
	secrets := []string{os.Getenv("PGPASSWORD")}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password, url.QueryEscape(password))
	}
	if cfg, err := pgconn.ParseConfig(address); err == nil {
		secrets = append(secrets, cfg.Password)
	}
	for _, secret := range secrets {
		if len(secret) > 3 { // shorter ones would tear holes into words
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return text
}
