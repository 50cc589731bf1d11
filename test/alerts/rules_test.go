package alerts_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestPromtool(t *testing.T) {
	promtool := program(t, "promtool")
	run := func(args ...string) {
		t.Run(filepath.Base(args[2]), func(t *testing.T) {
			t.Parallel()
			if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
				t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
			}
		})
	}
	run("check", "rules", rulesFile)
	for _, file := range unitTestFiles(t) {
		run("test", "rules", file)
	}
}

// TestEveryAlertIsTested checks that each alert fires in one unit test and is silent in another, or
// at another time; and that the healthy test has all metrics that the rules use, so that silence is
// meaningful.
func TestEveryAlertIsTested(t *testing.T) {
	fires, silent := make(map[string]bool), make(map[string]bool)
	var healthy string
	for _, path := range unitTestFiles(t) {
		var file unitTest
		load(t, path, &file)
		for _, test := range file.Tests {
			for _, a := range test.Alerts {
				fires[a.Name] = fires[a.Name] || len(a.Want) > 0
				silent[a.Name] = silent[a.Name] || len(a.Want) == 0
			}
			if test.Name == "healthy" {
				for _, s := range test.Series {
					healthy += s.Series + "\n"
				}
			}
		}
	}
	for _, r := range rules(t) {
		if r.Alert != "" && !(fires[r.Alert] && silent[r.Alert]) {
			t.Errorf("%s: fires in a test: %v, is silent in one: %v", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		for _, m := range ofMetric.FindAllStringSubmatch(r.Expr, -1) {
			if !strings.Contains(healthy, m[1]+"{") {
				t.Errorf("%s%s: the healthy scene has no %s", r.Alert, r.Record, m[1])
			}
		}
	}
}

func TestRulesUseWhatIsExported(t *testing.T) {
	var known, used []string
	for _, r := range rules(t) {
		checkNames(t, r.Alert+r.Record, r.Expr)
		known = append(known, r.Record)
		used = append(used, recorded.FindAllString(r.Expr, -1)...)
	}
	for _, name := range used {
		if !slices.Contains(known, name) {
			t.Errorf("nothing records %s", name)
		}
	}
}

// TestAlertsAreComplete checks that each alert explains what it means, gives a command to run, and
// links to a runbook.
func TestAlertsAreComplete(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/alerts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rules(t) {
		if r.Alert == "" {
			continue
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels["severity"]) {
			t.Errorf("%s: severity is %q", r.Alert, r.Labels["severity"])
		}
		if r.For == "" || r.Annotations["summary"] == "" {
			t.Errorf("%s: for is %q, the summary %q", r.Alert, r.For, r.Annotations["summary"])
		}
		if !strings.Contains(r.Annotations["description"], "Next: ") {
			t.Errorf("%s: the description does not say what to type next", r.Alert)
		}
		// Readers of an alert have no checkout, so the link is absolute.
		link, ok := strings.CutPrefix(r.Annotations["runbook_url"], "https://github.com/postrider/postrider/blob/main/")
		if !ok {
			t.Errorf("%s: its runbook is %q: want a link that can be opened", r.Alert, link)
		}
		checkLink(t, r.Alert, link)
		row := regexp.MustCompile("(?m)^\\| `" + r.Alert + "` \\|.*\\b" + r.Labels["severity"] + "\\b.*\\b" + r.For + "\\b").Match(text)
		if !row {
			t.Errorf("%s: docs/alerts.md has no row with its severity, %s, and its time, %s", r.Alert, r.Labels["severity"], r.For)
		}
	}
}

// checkLink looks for a file relative to the root of the repository and, after "#", for a heading
// in it.
func checkLink(t *testing.T, where, link string) {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil || path == "" {
		t.Errorf("%s: its runbook is %q: %v", where, link, err)
		return
	}
	heading := strings.ReplaceAll(anchor, "-", " ")
	if anchor != "" && !regexp.MustCompile(`(?mi)^#+ `+regexp.QuoteMeta(heading)+`$`).Match(text) {
		t.Errorf("%s: %s has no heading %q", where, path, heading)
	}
}
