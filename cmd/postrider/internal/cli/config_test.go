package cli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

const smallConfig = `databases:
  app: {url: "postgres://rider:hidden-secret@127.0.0.1:1/db?sslmode=disable"}
destinations:
  screen: {url: "stdout:"}
  spare: {url: "discard:"}
feeds:
  default:
    destination: screen
    relay: {batch: 100}
    routes:
      - {types: [document_uploaded], name: verify_document, id: "verify_{id}"}
      - {types: ["*"]}
`

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "postrider.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, smallConfig)
	r := offline(t, "config", "validate", path)
	if r.code != exitOK || !strings.Contains(r.out, "no mistakes: 1 database, 2 destinations, 1 feed") {
		t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	if !strings.Contains(r.err, path+":5:10: warning: destinations.spare: no feed uses it") {
		t.Errorf("no warning in\n%s", r.err)
	}
	r = offline(t, "config", "validate", path, "--json")
	var result checked
	if err := json.Unmarshal([]byte(r.out), &result); err != nil || r.code != exitOK || !result.Valid || len(result.Warnings) != 1 {
		t.Errorf("exit code %d, %v\n%s", r.code, err, r.out)
	}
}

func TestConfigMistakes(t *testing.T) {
	t.Parallel()
	text := strings.Replace(smallConfig, "batch: 100", "bach: 100", 1)
	text = strings.Replace(text, "verify_{id}", "verify", 1)
	path := writeConfig(t, text)
	for _, line := range [][]string{{"config", "validate", path}, {"config", "show", path}, {"relay", "--config", path}} {
		r := offline(t, line...)
		if r.code != exitUsage || r.out != "" {
			t.Errorf("%s: exit code %d, printed %q", line, r.code, r.out)
		}
		lines := strings.Split(r.err, "\n")
		if !strings.HasPrefix(lines[0], path+":9:13: feeds.default.relay.bach: unknown key") ||
			!strings.HasPrefix(lines[1], path+":11:65: feeds.default.routes[0].id: ") || lines[2] != "postrider: 2 mistakes in "+path {
			t.Errorf("%s:\n%s", line, r.err)
		}
	}
	r := offline(t, "config", "validate", path, "--json")
	var result checked
	if err := json.Unmarshal([]byte(r.out), &result); err != nil || r.code != exitUsage || result.Valid || len(result.Mistakes) != 2 ||
		result.Mistakes[1].Line != 11 {
		t.Errorf("exit code %d, %v\n%s", r.code, err, r.out)
	}
}

// TestConfigDatabaseAddress holds that what only the driver can judge is judged, without the password.
func TestConfigDatabaseAddress(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, strings.Replace(smallConfig, "sslmode=disable", "sslmode=maybe", 1))
	r := offline(t, "config", "validate", path)
	if r.code != exitUsage || !strings.Contains(r.err, path+":2:14: databases.app.url: ") || strings.Contains(r.err, "hidden-secret") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

func TestConfigValidateOpens(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, strings.Replace(smallConfig, `spare: {url: "discard:"}`, `spare: {url: "stdout:", format: raw}`, 1))
	if r := offline(t, "config", "validate", path); r.code != exitOK {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	if r := offline(t, "config", "validate", path, "--open"); r.code != exitUsage || !strings.Contains(r.err, path+":5:10: destinations.spare: stdout: format") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}

func TestConfigShow(t *testing.T) {
	t.Parallel()
	path := writeConfig(t, smallConfig)
	for _, args := range [][]string{{"config", "show", path}, {"config", "show", path, "--json"}} {
		r := offline(t, args...)
		if r.code != exitOK || strings.Contains(r.out+r.err, "hidden-secret") {
			t.Errorf("exit code %d\n%s%s", r.code, r.out, r.err)
		}
		for _, want := range []string{"postgres://rider:***@127.0.0.1:1/db", "read_ahead", "4000", "verify_{id}", "strict"} {
			if !strings.Contains(r.out, want) {
				t.Errorf("%q is not in\n%s", want, r.out)
			}
		}
	}
}

func TestConfigFromEnvironment(t *testing.T) {
	path := writeConfig(t, smallConfig)
	t.Setenv("POSTRIDER_CONFIG", path)
	var out, messages bytes.Buffer
	s := streams{in: strings.NewReader(""), out: &out, err: &messages}
	if code := execute(t.Context(), s, []string{"config", "validate"}); code != exitOK {
		t.Errorf("exit code %d\n%s", code, messages.String())
	}
	t.Setenv("POSTRIDER_CONFIG", "")
	t.Chdir(filepath.Dir(path))
	if code := execute(t.Context(), s, []string{"config", "validate"}); code != exitOK {
		t.Errorf("exit code %d\n%s", code, messages.String())
	}
}

// TestSchemaFile keeps the published schema in step with the brokers of this program.
func TestSchemaFile(t *testing.T) {
	t.Parallel()
	const file = "../../../../docs/postrider.schema.json"
	written, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(written, config.Schema()) {
		t.Errorf("%s is out of date (%v); run, in the top folder: go run ./cmd/postrider config schema > docs/postrider.schema.json", file, err)
	}
	if r := offline(t, "config", "schema"); r.code != exitOK || r.out != string(config.Schema()) {
		t.Errorf("exit code %d, and another schema", r.code)
	}
}

func TestBrokers(t *testing.T) {
	t.Parallel()
	r := offline(t, "brokers")
	for _, want := range []string{"all brokers", "format", "cloudevents|", "stdout", "discard:"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("%q is not in\n%s", want, r.out)
		}
	}
	r = offline(t, "brokers", "--json")
	var brokers []knownBroker
	if err := json.Unmarshal([]byte(r.out), &brokers); err != nil || len(brokers) < 2 || len(brokers[0].Options) < 5 {
		t.Errorf("%v\n%s", err, r.out)
	}
}

// TestConfigFilterOfATable refuses a filter by what an adopted table does not say: nothing would be sent, and nobody told.
func TestConfigFilterOfATable(t *testing.T) {
	t.Parallel()
	const file = `databases: {shop: {url: "mysql://h/d", layout: prisma}}
destinations: {jobs: {url: "discard:"}}
feeds: {acme: {only: {tenants: [acme]}}}
`
	path := writeConfig(t, file)
	r := offline(t, "config", "validate", path)
	if r.code != exitUsage || !strings.Contains(r.err, path+":3:22: feeds.acme.only: tenants: table Outbox has no column for it") {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
	path = writeConfig(t, strings.Replace(file, "layout: prisma", "layout: prisma, columns: {tenant_id: tenant}", 1))
	if r := offline(t, "config", "validate", path); r.code != exitOK {
		t.Errorf("exit code %d\n%s", r.code, r.err)
	}
}
