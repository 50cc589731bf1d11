package alerts_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/internal/need"
)

const (
	root      = "../.."
	rulesFile = root + "/deploy/prometheus/postrider.rules.yml"
	unitTests = root + "/deploy/prometheus/tests/*.yml"
	boardFile = root + "/deploy/grafana/dashboard.json"
)

// program finds a program that dev/services installs, or skips the test.
func program(t *testing.T, name string) string {
	t.Helper()
	return need.Program(t, name, "prometheus")
}

// rule is an alert or a recording rule.
type rule struct {
	Record      string            `yaml:"record"`
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// rules returns all rules of the file.
func rules(t *testing.T) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	load(t, rulesFile, &file)
	var all []rule
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// unitTest is a file of tests for promtool.
type unitTest struct {
	Tests []struct {
		Name   string `yaml:"name"`
		Series []struct {
			Series string `yaml:"series"`
		} `yaml:"input_series"`
		Alerts []struct {
			Name string      `yaml:"alertname"`
			Want []yaml.Node `yaml:"exp_alerts"`
		} `yaml:"alert_rule_test"`
	} `yaml:"tests"`
}

func load(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func unitTestFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(unitTests)
	if err != nil || len(files) == 0 {
		t.Fatalf("no %s, %v", unitTests, err)
	}
	return files
}
