package deploy_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/need"
)

const chart = root + "/deploy/helm/postrider"

var update = flag.Bool("update", false, "write what the chart renders to as what is expected")

// renderings maps the expected output to the values that it is rendered from.
var renderings = map[string]string{"testdata/default.yaml": "", "testdata/full.yaml": "testdata/full.values.yaml"}

// shown lists the files that the chart copies from elsewhere. The expected output leaves them out:
// they are long, and compared separately.
var shown = map[string]string{
	"postrider.rules.yml": root + "/deploy/prometheus/postrider.rules.yml",
	"dashboard.json":      root + "/deploy/grafana/dashboard.json",
}

func TestChart(t *testing.T) {
	for name, source := range shown {
		if read(t, filepath.Join(chart, "files", name)) != read(t, source) {
			t.Errorf("files/%s of the chart is not %s: run make chart", name, source)
		}
	}
	if *update || need.IsLong() {
		helm := need.Program(t, "helm", "helm")
		for golden, values := range renderings {
			render(t, helm, golden, values)
		}
	}
	if *update {
		if err := os.WriteFile(rendered, []byte(sources(t)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, rendered) != sources(t) {
		t.Error("the chart, what it was rendered to, or helm's version has changed: run make chart, and look at the difference")
	}
}

// rendered contains a hash of the inputs and outputs of the last rendering. helm takes minutes to
// compile, and its output is deterministic, so charts are rendered only by make chart and in the
// long form of this test.
const rendered = "testdata/rendered.sum"

// sources hashes the chart, the values, helm's version and the expected output.
func sources(t *testing.T) string {
	t.Helper()
	files := []string{root + "/dev/tools/kube/go.mod"}
	for golden, values := range renderings {
		files = append(files, golden)
		if values != "" {
			files = append(files, values)
		}
	}
	err := filepath.WalkDir(chart, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	h := sha256.New()
	for _, path := range files {
		text := unversioned(t, read(t, path))
		fmt.Fprintf(h, "%s %d\n%s", path, len(text), text)
	}
	return fmt.Sprintf("%x\n", h.Sum(nil))
}

// unversioned replaces the chart's version in a text, so that a release changes no expected output.
func unversioned(t *testing.T, text string) string {
	t.Helper()
	_, version, _ := strings.Cut(read(t, filepath.Join(chart, "Chart.yaml")), "\nappVersion: ")
	version, _, ok := strings.Cut(version, "\n")
	if !ok || version == "" {
		t.Fatal("Chart.yaml has no appVersion")
	}
	return strings.ReplaceAll(text, version, "VERSION")
}

// render compares the chart's output with the expected file.
func render(t *testing.T, helm, golden, values string) {
	t.Helper()
	var args []string
	if values != "" {
		args = []string{"--values", values}
	}
	run(t, helm, append([]string{"lint", "--strict", "--quiet", chart}, args...)...)
	cmd := exec.CommandContext(t.Context(), helm, append([]string{"template", "postrider", chart, "--namespace", "messaging"}, args...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("helm template: %v\n%s", err, err.(*exec.ExitError).Stderr) //nolint:errorlint,forcetypeassert // Output says so
	}
	text := unversioned(t, string(out))
	for name, source := range shown {
		for _, indent := range []string{"  ", "    "} {
			whole := indent + strings.ReplaceAll(read(t, source), "\n", "\n"+indent)
			text = strings.ReplaceAll(text, "\n"+whole, "\n"+indent+"# files/"+name)
		}
	}
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(t, golden) != text {
		t.Errorf("%s is not what the chart renders to: run make chart, and look at the difference", golden)
	}
}

// TestChartRefuses checks that the chart rejects invalid values before anything is installed.
func TestChartRefuses(t *testing.T) {
	need.Long(t, "helm takes minutes to compile")
	helm := need.Program(t, "helm", "helm")
	for set, want := range map[string]string{
		"console.enabled=true":     "needs tokens, oidc or proxy",
		"ingress.enabled=true":     "console.enabled must be true",
		"replicaCount=-1":          "/replicaCount",
		"config.health.listen=x":   "/config",
		"autoscaling.enabled=true": "autoscaling.prometheus: want the address",
		"health.token=":            "/health/token",
		"bogus=1":                  "bogus",
		"config.feeds.a.relay.drain_timeout=5s,config.databases.a.url=x,config.destinations.a.url=x": "drainTimeoutSeconds",
	} {
		out, err := exec.CommandContext(t.Context(), helm, "template", "postrider", chart, "--set", set).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%.600s", set, err, out)
		}
	}
}
