package bench

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// addressOf is the address that config was read from, with the database that it means now and a name for the connections. What the
// PG* variables say is left to them.
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
	address.RawQuery = strings.ReplaceAll(values.Encode(), "+", "%20") // PostgreSQL takes a plus for a plus
	return address.String(), nil
}

// quoted is a value as key=value pairs have it.
func quoted(value string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
}
