package deploy_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const chart = root + "/deploy/helm/postrider"

var update = flag.Bool("update", false, "write what the chart renders to as what is expected")

// renderings are the sets of values, and what the chart makes of them.
var renderings = map[string]string{"testdata/default.yaml": "", "testdata/full.yaml": "testdata/full.values.yaml"}

// shown is what the chart has from elsewhere. It is left out of what is expected: it is long, and compared by itself.
var shown = map[string]string{
	"postrider.rules.yml": root + "/deploy/prometheus/postrider.rules.yml",
	"dashboard.json":      root + "/deploy/grafana/dashboard.json",
}

// helm is the program. It takes minutes to compile, once; dev/check does that beside other work.
func helm(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(root + "/bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		tool(t, path, "helm.sh/helm/v4/cmd/helm")
	}
	return path
}

func tool(t *testing.T, path, pkg string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "-C", root+"/dev/tools/kube", "build", "-o", path, pkg)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
}

func TestChart(t *testing.T) {
	for name, source := range shown {
		if read(t, filepath.Join(chart, "files", name)) != read(t, source) {
			t.Errorf("files/%s of the chart is not %s: run make chart", name, source)
		}
	}
	for golden, values := range renderings {
		render(t, helm(t), golden, values)
	}
}

// render compares what the chart makes of values with what is expected.
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
	text := string(out)
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

// TestChartRefuses: mistakes are told before anything is installed.
func TestChartRefuses(t *testing.T) {
	helm := helm(t)
	for set, want := range map[string]string{
		"console.enabled=true":   "needs tokens, oidc or proxy",
		"ingress.enabled=true":   "console.enabled must be true",
		"replicaCount=-1":        "/replicaCount",
		"config.health.listen=x": "/config",
		"health.token=":          "/health/token",
		"bogus=1":                "bogus",
		"config.feeds.a.relay.drain_timeout=5s,config.databases.a.url=x,config.destinations.a.url=x": "drainTimeoutSeconds",
	} {
		out, err := exec.CommandContext(t.Context(), helm, "template", "postrider", chart, "--set", set).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v\n%.600s", set, err, out)
		}
	}
}
