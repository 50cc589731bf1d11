package docs

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/test/built"
)

// ours are the top-level keys of a configuration file.
var ours = []string{"databases", "destinations", "feeds", "reconcilers", "connections", "health", "console"}

// others are the keys by which files of other programs are recognized.
var others = map[string]string{
	"services": "Compose", "apiVersion": "Kubernetes", "scrape_configs": "Prometheus", "groups": "rules of Prometheus",
	"route": "Alertmanager", "receivers": "Alertmanager", "openapi": "OpenAPI",
}

// yamlFile returns an error if a block is not YAML, or is an invalid configuration file.
func yamlFile(t *testing.T, b block) error {
	t.Helper()
	documents := yaml.NewDecoder(strings.NewReader(b.text))
	for n := 0; ; n++ {
		var content map[string]any
		err := documents.Decode(&content)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = document(t, b, content)
		}
		if err != nil {
			return fmt.Errorf("document %d: %w", n+1, err)
		}
	}
}

func document(t *testing.T, b block, content map[string]any) error {
	t.Helper()
	if _, told := b.notes["yaml"]; told || len(content) == 0 { // a block may consist of a comment
		return nil
	}
	for key := range content {
		if _, known := others[key]; known {
			return embedded(t, content)
		}
	}
	return configuration(t, content)
}

// embedded checks configuration files inside a ConfigMap.
func embedded(t *testing.T, content map[string]any) error {
	t.Helper()
	data, _ := content["data"].(map[string]any)
	for name, value := range data {
		text, isText := value.(string)
		if !isText || !strings.HasPrefix(name, "postrider") || !strings.HasSuffix(name, ".yaml") {
			continue
		}
		var inner map[string]any
		if err := yaml.Unmarshal([]byte(text), &inner); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := configuration(t, inner); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

var (
	secretFile = regexp.MustCompile(`\$\{file:[^}]*\}`)
	variables  = regexp.MustCompile(`\$\{([A-Za-z_0-9]+)[^}]*\}`)
)

// configuration checks a configuration file of "postrider relay --config". Pages may leave out
// sections; the sections that the others refer to are then added. A complete file must not cause
// warnings either.
func configuration(t *testing.T, content map[string]any) error {
	t.Helper()
	for key := range content {
		if !slices.Contains(ours, key) {
			return fmt.Errorf("%q is not a key of a configuration file; what else it is says a comment: <!-- yaml: name -->", key)
		}
	}
	whole := complete(content)
	text, err := yaml.Marshal(content)
	if err != nil {
		return err
	}
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		return err
	}
	text = secretFile.ReplaceAllLiteral(text, []byte("${file:"+secret+"}"))
	file := filepath.Join(t.TempDir(), "postrider.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	cmd := exec.CommandContext(t.Context(), built.Program(t, "cmd/postrider"), "config", "validate", file)
	cmd.Env = os.Environ()
	for _, name := range variables.FindAllSubmatch(text, -1) {
		cmd.Env = append(cmd.Env, string(name[1])+"="+variable(string(name[1])))
	}
	said, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s\n%s", err, said, text)
	}
	if whole && strings.Contains(string(said), "warning: ") {
		return fmt.Errorf("a whole file has warnings: %s", said)
	}
	return nil
}

// complete adds the sections that a page has left out, and reports whether there were none.
func complete(content map[string]any) bool {
	names := map[string][]string{"databases": {"app"}, "destinations": {"jobs", "events", "audit"}, "feeds": {"default"}}
	mentioned(content, map[string]string{"database": "databases", "inbox": "databases", "destination": "destinations", "feed": "feeds"}, names)
	add := func(section string, entry map[string]any) bool {
		if _, there := content[section]; there {
			return false
		}
		entries := map[string]any{}
		for _, name := range names[section] {
			entries[name] = entry
		}
		content[section] = entries
		return true
	}
	databases := add("databases", map[string]any{"url": "host=localhost"})
	destinations := add("destinations", map[string]any{"url": "nats://localhost"})
	feeds := add("feeds", map[string]any{"database": names["databases"][0], "destination": names["destinations"][0]})
	return !databases && !destinations && !feeds
}

// mentioned collects the names that the values of some keys refer to.
func mentioned(node any, sections map[string]string, names map[string][]string) {
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			if section, ok := sections[key]; ok {
				if name, isText := value.(string); isText && !slices.Contains(names[section], name) {
					names[section] = append(names[section], name)
				}
			}
			mentioned(value, sections, names)
		}
	case []any:
		for _, value := range node {
			mentioned(value, sections, names)
		}
	}
}

// variable returns a value for an environment variable, of the type that its name suggests.
func variable(name string) string {
	if !strings.HasSuffix(name, "URL") {
		return strings.Repeat("x", 32)
	}
	for part, scheme := range map[string]string{"DATABASE": "postgres", "POSTGRES": "postgres", "RABBIT": "amqp", "KAFKA": "kafka", "REDIS": "redis"} {
		if strings.Contains(name, part) {
			return scheme + "://localhost/"
		}
	}
	return "nats://localhost"
}
