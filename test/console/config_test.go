package console

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// Tokens of the console's users. They are valid only in these tests.
var tokens = map[string]string{
	"linh": "viewer-token-for-tests-only-0001",   // viewer
	"minh": "operator-token-for-tests-only-0002", // operator
	"wei":  "admin-token-for-tests-only-000003",  // admin
}

const sessionKey = "session-key-for-tests-only-0123456789"

// prefix is the path of the console behind a proxy.
const prefix = "/ops/postrider"

// file has the settings that differ between the processes of a shop.
type file struct {
	Shop, Billing   string // addresses of the databases
	NATS, Stream    string
	Partner         string // address of the partners' endpoint
	Health, Console string // listen addresses
	Prefix          string
	SessionKey      string
	Tokens          map[string]string
}

var fileText = template.Must(template.New("postrider.yaml").Parse(`
databases:
  shop: {url: "{{.Shop}}"}
  billing: {url: "{{.Billing}}"}

destinations:
  events: {url: "{{.NATS}}", stream: {{.Stream}}}
  partners: {url: "{{.Partner}}", allow_loopback: true, parallel: 8}

feeds:
  default:
    database: shop
    create: oldest
    destination: events
    relay: {lease: 5s, retry: {attempts: 2, first: 200ms, most: 300ms}, canary: 2s}
    routes:
      - {types: ["order.*"], name: "{{.Stream}}.orders"}
      - {types: ["payment.*"], name: "{{.Stream}}.payments"}
      - {types: ["shipment.*"], name: "{{.Stream}}.shipping"}
      - {types: ["invoice.*"], name: "{{.Stream}}.invoices"}
      - {types: ["loyalty.*"], name: "{{.Stream}}.loyalty.{tenant}"}
      - {types: ["*<*", "*odd*"], name: "{{.Stream}}.odd"}
  partners:
    database: shop
    create: oldest
    destination: partners
    only: {types: ["shipment.*"]}
    order: skip
    relay: {lease: 5s, retry: {attempts: 2, first: 200ms, most: 300ms}}
    routes:
      - {name: "{type}"}
  ledger:
    database: billing
    destination: events
    relay: {lease: 5s}
    routes:
      - {name: "{{.Stream}}.ledger"}

reconcilers:
  unbilled-orders:
    database: shop
    every: 6h
    grace: 1s
    window: 24h
    query: >-
      SELECT id, id AS aggregate_id, json_build_object('order', id, 'total', total) AS payload
      FROM orders WHERE created_at >= $1 AND created_at < $2 AND NOT billed
    type: invoice.requested
    aggregate_type: order
    dedup_key: "invoice:{id}"

health: {listen: "{{.Health}}"}
{{- if .Console}}

console:
  listen: "{{.Console}}"
  {{- if .Prefix}}
  prefix: {{.Prefix}}
  {{- end}}
  session_key: {{.SessionKey}}
  trace_url: "http://127.0.0.1:16686/trace/{trace_id}"
  redact: ["$..card.number", "$..password"]
  tokens:
    linh: {token: "{{.Tokens.linh}}", role: viewer}
    minh: {token: "{{.Tokens.minh}}", role: operator}
    wei: {token: "{{.Tokens.wei}}", role: admin}
{{- end}}
`))

// write writes the file into a folder of the test and returns its path.
func (f file) write(t *testing.T, name string) string {
	t.Helper()
	var text strings.Builder
	f.Tokens, f.SessionKey = tokens, sessionKey
	if err := fileText.Execute(&text, f); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
