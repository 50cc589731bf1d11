package alerts_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"
)

// server is a separate Prometheus server.
type server struct {
	t   *testing.T
	url string
}

// startPrometheus starts a server that scrapes and evaluates every second. jobs maps job names to
// addresses.
func startPrometheus(t *testing.T, rules string, jobs map[string][]string) *server {
	t.Helper()
	dir := t.TempDir()
	// JSON is valid YAML.
	var scrapes []any
	for job, targets := range jobs {
		scrapes = append(scrapes, map[string]any{"job_name": job, "static_configs": []any{map[string]any{"targets": targets}}})
	}
	text, err := json.Marshal(map[string]any{
		"global":         map[string]any{"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
		"rule_files":     []string{"rules.yml"},
		"scrape_configs": scrapes,
	})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "prometheus.yml")
	for path, text := range map[string]string{config: string(text), filepath.Join(dir, "rules.yml"): rules} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	listens := make(chan string, 1)
	launch(t, listens, regexp.MustCompile(`msg="Listening on" address=(\S+)`), program(t, "prometheus"),
		"--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "data"), "--web.listen-address", "127.0.0.1:0")
	s := &server{t, "http://" + receive(t, listens)}
	eventually(t, "Prometheus is ready", func() bool {
		resp, err := http.Get(s.url + "/-/ready")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return s
}

// firing returns the firing alerts, as name{job, feed or instance}.
func (s *server) firing() map[string]bool {
	s.t.Helper()
	var answer struct {
		Alerts []struct {
			State  string
			Labels map[string]string
		}
	}
	if err := s.get("/api/v1/alerts", nil, &answer); err != nil {
		s.t.Fatal(err)
	}
	fire := make(map[string]bool)
	for _, a := range answer.Alerts {
		if a.State == "firing" {
			l := a.Labels
			fire[fmt.Sprintf("%s{%s %s%s}", l["alertname"], l["job"], l["feed"], l["instance"])] = true
		}
	}
	return fire
}

// query returns the number of series that an expression has.
func (s *server) query(expr string) (int, error) {
	var answer struct{ Result []json.RawMessage }
	err := s.get("/api/v1/query", url.Values{"query": {expr}}, &answer)
	return len(answer.Result), err
}

func (s *server) get(path string, args url.Values, data any) error {
	ctx, cancel := context.WithTimeout(s.t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path+"?"+args.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer := struct {
		Status, Error string
		Data          any
	}{Data: data}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Status != "success" {
		return fmt.Errorf("%s: %s", resp.Status, answer.Error)
	}
	return nil
}

var (
	lasts  = regexp.MustCompile(`(?m)^(\s+for: )(\S+)$`)
	oldAge = regexp.MustCompile(`(_age_seconds\S* > )(\d+)`)
)

// hurried returns the rules with shorter times, so that a test can wait for them: "for" durations
// are divided by one number and age thresholds by another, which leaves room for the seconds
// between two queries of the database.
func hurried(t *testing.T, lastsBy, ageBy float64) string {
	t.Helper()
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		t.Fatal(err)
	}
	out := lasts.ReplaceAllStringFunc(string(text), func(line string) string {
		part := lasts.FindStringSubmatch(line)
		d, err := time.ParseDuration(part[2])
		if err != nil {
			t.Fatal(err)
		}
		return part[1] + strconv.FormatInt(max(1, int64(d.Seconds()/lastsBy)), 10) + "s"
	})
	return oldAge.ReplaceAllStringFunc(out, func(limit string) string {
		part := oldAge.FindStringSubmatch(limit)
		n, err := strconv.ParseFloat(part[2], 64)
		if err != nil {
			t.Fatal(err)
		}
		return part[1] + strconv.FormatFloat(n/ageBy, 'f', -1, 64)
	})
}

// launch runs a program until the test ends, and sends what the pattern finds in its log.
func launch(t *testing.T, found chan<- string, pattern *regexp.Regexp, path string, args ...string) *exec.Cmd {
	t.Helper()
	log := &finder{pattern: pattern, found: found}
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // also kills a suspended process
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%s", filepath.Base(path), log.tail())
		}
	})
	return cmd
}
