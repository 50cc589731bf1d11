package api

import (
	"os"
	"os/exec"
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
}

// TestNames checks that the tests that pages name exist.
func TestNames(t *testing.T) {
	name := `(?:Test|Fuzz|Example)\w+`
	lines := func(pattern string, files ...string) []string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"grep", "-hP", pattern, "--"}, files...)...)
		cmd.Dir = top
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("git grep %s: %v", pattern, err)
		}
		return strings.Split(string(out), "\n")
	}
	exists := make(map[string]bool)
	declared := regexp.MustCompile("^func (" + name + ")")
	for _, line := range lines("^func (Test|Fuzz|Example)", "*_test.go") {
		if found := declared.FindStringSubmatch(line); found != nil {
			exists[found[1]] = true
		}
	}
	named := regexp.MustCompile("`(" + name + ")`")
	for _, line := range lines("`(Test|Fuzz|Example)", "docs/*.md", "*.md") {
		for _, found := range named.FindAllStringSubmatch(line, -1) {
			if !exists[found[1]] {
				t.Errorf("a page names %s, which does not exist: %s", found[1], line)
			}
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
