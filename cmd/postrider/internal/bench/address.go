package bench

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// addressOf returns the address that config was parsed from, with its current database and an
// application name. It leaves out what the PG* variables provide.
func addressOf(config *pgxpool.Config, application string) (string, error) {
	text, database := config.ConnString(), config.ConnConfig.Database
	if !strings.HasPrefix(text, "postgres://") && !strings.HasPrefix(text, "postgresql://") {
		return strings.TrimSpace(fmt.Sprintf("%s dbname=%s application_name=%s", text, quoted(database), quoted(application))), nil
	}
	address, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("bench: the address of the database: %w", err)
	}
	address.Path, address.RawPath = "/"+database, ""
	values := address.Query()
	values.Set("application_name", application)
	values.Del("dbname")
	address.RawQuery = strings.ReplaceAll(values.Encode(), "+", "%20") // PostgreSQL does not decode a plus
	return address.String(), nil
}

// quoted formats a value for key=value pairs.
func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
