package console

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/playwright"
)

// signOnFile has the configuration for Keycloak from docs/console-access.md.
const signOnFile = `
databases:
  shop: {url: "%[1]s"}
destinations:
  events: {url: "%[2]s"}
feeds:
  default:
    database: shop
    destination: events
    routes: [{types: ["order.*"], name: "%[3]s.orders"}]
    relay: {retry: {attempts: 1}}
    create: oldest
health: {listen: "%[4]s"}
console:
  listen: "%[5]s"
  oidc:
    issuer: "%[6]s"
    client_id: console
    client_secret: secret-of-console-for-tests-only
    redirect_url: "http://%[5]s/auth/callback"
    roles_claim: groups
    name_claim: preferred_username
    roles: {postrider-viewer: viewer, postrider-operator: operator, postrider-admin: admin}
`

// TestSignOn tests signing in to a console with Keycloak, and signing out.
func TestSignOn(t *testing.T) {
	need.Alone(t, "a browser waits for some seconds only")
	issuer := need.Env(t, "POSTRIDER_TEST_KEYCLOAK", "keycloak")
	if pictures {
		t.Skip("there are no pictures of it")
	}
	playwright.Install(t, "browser")
	s := &shop{t: t, db: newDatabase(t, "signon")}
	s.nats, s.stream = newStream(t)
	dead := postrider.Event("unrouted", postrider.Aggregate{Type: "order", ID: "DH-1"}, map[string]any{"recipient": "Trần Quốc Đạt"})
	s.mustSend(dead)

	console, health := port.For(t), port.For(t)
	path := filepath.Join(t.TempDir(), "postrider.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, signOnFile, s.db.dsn, s.nats, s.stream, health, console, issuer), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, "relay", "--config", path)
	answers(t, "http://"+console+"/api/v1/me", http.StatusUnauthorized)
	eventually(t, "the dead letter", func() error {
		var n int
		err := s.db.pool.QueryRow(t.Context(), "SELECT count(*) FROM postrider.deferred WHERE status = 'dead'").Scan(&n)
		if err == nil && n == 0 {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	browse(t, map[string]any{
		"folder": "signon", "console": "http://" + console + "/", "ids": map[string]string{},
		"issuer": issuer, "dead": dead.ID.String(),
	})
}
