package config

import (
	"errors"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/memory"
	_ "github.com/postrider/postrider/broker/stdout"
)

// fake is a broker with options of all kinds. It opens the memory broker.
func init() {
	broker.Register(broker.Driver{
		Name:    "fake",
		Schemes: []string{"fake", "fakes"},
		Doc:     "Nowhere.",
		Options: []broker.Option{
			{Name: "text", Kind: broker.Text, Doc: "Text."},
			{Name: "password", Kind: broker.Secret, Doc: "Secret."},
			{Name: "window", Kind: broker.Int, Default: "7", Doc: "Number."},
			{Name: "wait", Kind: broker.Duration, Default: "5s", Doc: "Duration."},
			{Name: "loud", Kind: broker.Bool, Default: "false", Doc: "Bool."},
			{Name: "hosts", Kind: broker.List, Doc: "List."},
			{Name: "mode", Kind: broker.Text, Values: []string{"fast", "safe"}, Default: "safe", Doc: "Choice."},
		},
		Publisher: func(s *broker.Settings) (postrider.Publisher, error) {
			if s.Text("text") == "bad" {
				return nil, errors.New("text and mode do not go together")
			}
			return memory.New(), nil
		},
	})
}

var environment = map[string]string{
	"DATABASE_URL": "postgres://rider:db-secret@host/app",
	"BATCH":        "200",
	"EMPTY":        "",
}

func lookup(name string) (string, bool) {
	value, ok := environment[name]
	return value, ok
}

func parse(text string) (*File, error) { return Parse("postrider.yaml", []byte(text), lookup) }

func mustParse(t *testing.T, text string) *File {
	t.Helper()
	f, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// good is a file that tests spoil.
const good = `databases:
  app:
    url: ${DATABASE_URL}
destinations:
  jobs:
    url: fake://user:broker-secret@host
    password: ${file:testdata/secret}
    window: 9
  events:
    url: fakes://other
    hosts: [a, b]
feeds:
  default:
    destination: events
    only:
      tenants: [acme, ""]
    order: strict
    relay:
      lease: 20s
      batch: ${BATCH}
    routes:
      - types: document_uploaded
        destination: jobs
        name: verify_document
        id: verify_{id}
      - types: [debug.*]
        drop: true
      - name: "{aggregate_type}.events"
`

// spoil replaces a text in the good file.
func spoil(t *testing.T, old, replacement string) string {
	t.Helper()
	if strings.Count(good, old) != 1 {
		t.Fatalf("%q is not there once", old)
	}
	return strings.Replace(good, old, replacement, 1)
}
