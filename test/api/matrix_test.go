package api

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const top = "../.."

// matrix maps rows of the table in docs/compatibility.md to where the version that is tested stands.
var matrix = []struct{ row, file, version string }{
	{"Go", "go.work", `(?m)^go (\d+\.\d+)`},
	{"NATS", "dev/tools/nats/go.mod", `nats-server/v2 v(\S+)`},
	{"Kafka", "dev/lib/kafka.sh", `KAFKA_VERSION=(\S+)`},
	{"Pulsar", "dev/lib/pulsar.sh", `PULSAR_VERSION=(\S+)`},
	{"Amazon SQS and SNS", "dev/lib/elasticmq.sh", `ELASTICMQ_VERSION=(\S+)`},
	{"Amazon SQS and SNS", "dev/lib/moto.sh", `MOTO_VERSION=(\S+)`},
	{"Debezium Server", "dev/lib/debezium.sh", `DEBEZIUM_VERSION=(\S+)`},
	{"Schema registry", "dev/lib/registry.sh", `REGISTRY_VERSION=(\S+)`},
	{"OpenID Connect", "dev/lib/keycloak.sh", `KEYCLOAK_VERSION=(\S+)`},
}

// TestMatrix checks that the versions and tests in docs/compatibility.md exist.
func TestMatrix(t *testing.T) {
	page := read(t, "docs/compatibility.md")
	for _, m := range matrix {
		found := regexp.MustCompile(m.version).FindStringSubmatch(read(t, m.file))
		row := regexp.MustCompile(`(?m)^\| ` + m.row + ` \|.*$`).FindString(page)
		if found == nil || !strings.Contains(row, " "+found[1]) {
			t.Errorf("%s: %s has %q, docs/compatibility.md %q", m.row, m.file, found, row)
		}
	}
	jobs := read(t, ".github/workflows/ci.yml")
	versions := regexp.MustCompile(`postgres: \["(.*)"\]`).FindStringSubmatch(jobs)
	if versions == nil || !strings.Contains(page, "| "+strings.ReplaceAll(versions[1], `", "`, ", ")+" | every change | job `versions`") {
		t.Errorf("the job versions has %q, docs/compatibility.md others", versions)
	}

	var sources strings.Builder
	err := filepath.WalkDir(top, func(path string, d os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || path != top && strings.HasPrefix(d.Name(), ".") && d.Name() != ".."):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go"):
			text, err := os.ReadFile(path)
			sources.Write(text)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(page, -1) {
		if !strings.Contains(sources.String(), "func "+name[1]+"(") {
			t.Errorf("docs/compatibility.md names %s, which does not exist", name[1])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
