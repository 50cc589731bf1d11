// Package dashboard generates the Grafana dashboard, deploy/grafana/dashboard.json. After a change,
// run go generate in this folder.
package dashboard

import (
	"bytes"
	"encoding/json"
	"regexp"
)

//go:generate go run ./write ../../../deploy/grafana/dashboard.json

// JSON returns the dashboard in Grafana's import format.
func JSON() ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // keeps the queries readable
	enc.SetIndent("", "  ")
	err := enc.Encode(compose())
	return text.Bytes(), err
}

// Queries returns every PromQL expression of the dashboard, with typical values for its variables.
func Queries() []string {
	var all []string
	for _, r := range questions() {
		for _, p := range r.panels {
			for _, q := range p.queries {
				all = append(all, plain(q.expr))
			}
		}
	}
	return all
}

// Runbooks returns the files that panels link to, relative to the root of the repository.
func Runbooks() []string {
	var all []string
	for _, r := range questions() {
		for _, p := range r.panels {
			if p.runbook != "" {
				all = append(all, p.runbook)
			}
		}
	}
	return all
}

var variables = regexp.MustCompile(`\$[a-z]+\b`)

func plain(expr string) string {
	expr = regexp.MustCompile(`\$__rate_interval`).ReplaceAllString(expr, "1m")
	return variables.ReplaceAllString(expr, ".*")
}

func compose() board {
	return board{
		UID:           "postrider",
		Title:         "Postrider",
		Description:   "Made by test/alerts/dashboard; what the thresholds mean is in docs/alerts.md.",
		Tags:          []string{"postrider", "outbox"},
		Editable:      true,
		GraphTooltip:  1,
		Refresh:       "10s",
		SchemaVersion: 39,
		Time:          span{"now-1h", "now"},
		Timezone:      "browser",
		Links:         []link{page("Runbooks", "docs/operations/README.md"), page("Alerts", "docs/alerts.md")},
		Templating: templating{[]variable{
			{Name: "source", Label: "Prometheus", Type: "datasource", Query: "prometheus"},
			labelled("job", "Job", `label_values(postrider_relay_members, job)`),
			labelled("database", "Database", `label_values(postrider_relay_members{job=~"$job"}, database)`),
			labelled("feed", "Feed", `label_values(postrider_feed_paused{job=~"$job",database=~"$database"}, feed)`),
			constant("runbooks", "Where the runbooks are", "https://github.com/postrider/postrider/blob/main"),
		}},
		Panels: layout(questions()),
	}
}

func prometheus() *source { return &source{"prometheus", "${source}"} }

func labelled(name, label, query string) variable {
	return variable{
		Name: name, Label: label, Type: "query", Datasource: prometheus(), Definition: query,
		Query: labelQuery{query, "values"}, Refresh: 2, Sort: 1, Multi: true, IncludeAll: true, AllValue: ".*",
		Current: &choice{[]string{"All"}, []string{"$__all"}, true},
	}
}

func constant(name, label, value string) variable {
	return variable{Name: name, Label: label, Type: "constant", Query: value, Hide: 2,
		Current: &choice{value, value, true}, Options: []any{choice{value, value, true}}}
}
