package cli

import (
	"net/url"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/table/mysql"
)

// scrub removes passwords from a text that may quote the address.
func (d *database) scrub(text string) string {
	address := d.address()
	text = phrase.WithoutPasswords(text)
	secrets := []string{os.Getenv("PGPASSWORD")}
	if u, err := url.Parse(address); err == nil && u.User != nil {
		password, _ := u.User.Password()
		secrets = append(secrets, password, url.QueryEscape(password))
	}
	if cfg, err := pgconn.ParseConfig(address); err == nil {
		secrets = append(secrets, cfg.Password)
	}
	if cfg, err := mysql.ParseURL(address); err == nil {
		secrets = append(secrets, cfg.Passwd)
	}
	for _, secret := range secrets {
		if len(secret) > 3 { // shorter ones may occur in ordinary words
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return text
}
