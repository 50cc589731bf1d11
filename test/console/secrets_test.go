package console

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/port"
)

// secrets are the planted secrets, by place. No output may contain any of them.
var secrets = map[string]string{
	"password of a database":           "canary-dsn-password",
	"password of a lost database":      "canary-lost-dsn-password",
	"password of a broker":             "canary-broker-password",
	"password of a lost broker":        "canary-lost-broker-password",
	"secret of the identity provider":  "canary-oidc-client-secret",
	"session key":                      "canary-session-key-0123456789-0123456789",
	"token of the viewer":              "canary-token-of-the-viewer",
	"token of the operator":            "canary-token-of-the-operator",
	"token of the admin":               "canary-token-of-the-admin",
	"header authorization":             "canary-authorization",
	"header with a secret name":        "canary-api-key",
	"payload under a redacted path":    "canary-card-number",
	"payload under a redacted path, 2": "canary-password",
}

const secretFile = `
databases:
  shop: {url: "%[1]s"}
  lost: {url: "postgres://relay:canary-lost-dsn-password@127.0.0.1:1/lost?sslmode=disable"}
destinations:
  events: {url: "%[2]s"}
  nowhere: {url: "nats://relay:canary-lost-broker-password@127.0.0.1:1"}
feeds:
  default:
    database: shop
    destination: events
    routes: [{types: ["order.*"], name: "%[3]s.orders"}]
    relay: {retry: {attempts: 1}}
    create: oldest
  stranded: {database: shop, destination: nowhere, create: oldest}
  lost: {database: lost, destination: events}
health: {listen: "%[4]s"}
console:
  listen: "%[5]s"
  session_key: canary-session-key-0123456789-0123456789
  redact: ["$..card", "$..password"]
  tokens:
    ann: {token: canary-token-of-the-viewer}
    bob: {token: canary-token-of-the-operator, role: operator}
    cay: {token: canary-token-of-the-admin, role: admin}
  oidc:
    issuer: "http://127.0.0.1:1/realm"
    client_id: postrider
    client_secret: canary-oidc-client-secret
    redirect_url: "http://%[5]s/auth/callback"
    roles: {sre: admin}
`

// secretive is a daemon with a secret in every place that can have one.
type secretive struct {
	t       *testing.T
	console string
	health  string
	daemon  *process
	id      string // of a dead letter
	looked  int
}

func newSecretive(t *testing.T) *secretive {
	s := &shop{t: t, db: newDatabase(t, "secrets")}
	s.nats, s.stream = newStream(t)
	withPassword := func(address, password string) string {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		name := "relay"
		if u.User != nil {
			name = u.User.Username()
		}
		u.User = url.UserPassword(name, password)
		return u.String()
	}
	d := &secretive{t: t, console: port.For(t), health: port.For(t)}
	path := filepath.Join(t.TempDir(), "postrider.yaml")
	text := fmt.Sprintf(secretFile, withPassword(s.db.dsn, "canary-dsn-password"), withPassword(s.nats, "canary-broker-password"),
		s.stream, d.health, d.console)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(m *postrider.Message) {
		m.Headers = map[string]string{"Authorization": "Bearer canary-authorization", "x-api-key": "canary-api-key", "x-plain": "seen"}
	}
	payload := map[string]any{"order": "DH-1", "card": map[string]any{"number": "canary-card-number"}, "user": map[string]any{"Password": "canary-password"}}
	dead := postrider.Event("unrouted", postrider.Aggregate{Type: "order", ID: "DH-1"}, payload, with)
	d.id = dead.ID.String()
	s.mustSend(postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "DH-2"}, payload, with), dead)
	d.daemon = start(t, "relay", "--config", path)
	answers(t, "http://"+d.console+"/api/v1/me", http.StatusUnauthorized)
	return d
}

// TestSecrets requests everything from the daemon, as every user, and searches the responses for
// secrets.
func TestSecrets(t *testing.T) {
	d := newSecretive(t)
	eventually(t, "the dead letter", func() error {
		var n struct{ Dead int }
		err := getJSON("http://"+d.console+"/api/v1/dead/count?db=shop", secrets["token of the admin"], &n)
		if err == nil && n.Dead == 0 {
			err = fmt.Errorf("there is none")
		}
		return err
	})
	routes := d.routes()
	if len(routes) < 20 {
		t.Errorf("the description has %d routes to get, want more: %v", len(routes), routes)
	}
	for _, who := range []string{"", "viewer", "operator", "admin"} {
		token := ""
		if who != "" {
			token = secrets["token of the "+who]
		}
		for _, db := range []string{"shop", "lost", "there-is-none"} {
			for _, route := range routes {
				d.get("http://"+d.console+"/api/v1"+route+"?db="+db, token, who)
			}
		}
		for _, page := range []string{"/", "/dead", "/auth/methods", "/auth/login?to=/", "/auth/callback?state=x&code=y", "/api/openapi.json", "/no/such"} {
			d.get("http://"+d.console+page, token, who)
		}
	}
	for _, page := range []string{"/metrics", "/livez", "/readyz", "/readyz?verbose"} {
		d.get("http://"+d.health+page, "", "anybody")
	}
	shown := d.get("http://"+d.console+"/api/v1/messages/"+d.id+"?db=shop", secrets["token of the admin"], "admin")
	if !strings.Contains(shown, "DH-1") || !strings.Contains(shown, `"seen"`) {
		t.Errorf("an admin does not see the rest of the message: %s", shown)
	}
	d.daemon.kill(syscall.SIGTERM)
	d.holds("the log", d.daemon.said.String())
	t.Logf("%d answers and %d bytes of log", d.looked, len(d.daemon.said.String()))
}

// routes returns the GET paths of the API description, with values for their parameters.
func (d *secretive) routes() []string {
	d.t.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := getJSON("http://"+d.console+"/api/openapi.json", secrets["token of the admin"], &doc); err != nil {
		d.t.Fatal(err)
	}
	known := map[string]string{"{id}": d.id, "{name}": "default", "{feed}": "default", "{job}": "none"}
	parameter := regexp.MustCompile(`\{[^}]+\}`)
	var routes []string
	for path, operations := range doc.Paths {
		if _, ok := operations["get"]; !ok || strings.Contains(path, "events") || strings.Contains(path, "tail") {
			continue // streams do not end
		}
		path = strings.TrimPrefix(path, "/api/v1")
		routes = append(routes, parameter.ReplaceAllStringFunc(path, func(p string) string { return known[p] }))
	}
	return routes
}

// get sends a request and checks the whole response.
func (d *secretive) get(address, token, who string) string {
	d.t.Helper()
	var text string
	eventually(d.t, address, func() error {
		req, err := http.NewRequest(http.MethodGet, address, nil)
		if err != nil {
			return err
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusTooManyRequests {
			return fmt.Errorf("asked too often")
		}
		var all strings.Builder
		_ = resp.Header.Write(&all)
		if _, err := io.Copy(&all, resp.Body); err != nil {
			return err
		}
		text = all.String()
		return nil
	})
	d.looked++
	d.holds(strings.TrimPrefix(address, "http://"+d.console)+" for "+who, text)
	return text
}

// holds fails the test if a text contains a secret.
func (d *secretive) holds(where, text string) {
	d.t.Helper()
	for what, secret := range secrets {
		if at := strings.Index(text, secret); at >= 0 {
			d.t.Errorf("%s: %s is in it: …%s…", where, what, text[max(0, at-80):min(len(text), at+80)])
		}
	}
}
