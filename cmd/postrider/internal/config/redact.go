package config

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

// hiddenText replaces secrets.
const hiddenText = "***"

// Redacted is a configuration with all defaults and without secrets, for display. Everything else
// reads as it would in a file.
type Redacted struct {
	Databases    map[string]RedactedDatabase `json:"databases" yaml:"databases"`
	Destinations map[string]map[string]any   `json:"destinations" yaml:"destinations"` // url, broker and the options
	Feeds        map[string]RedactedFeed     `json:"feeds" yaml:"feeds"`
	Reconcilers  map[string]map[string]any   `json:"reconcilers,omitempty" yaml:"reconcilers,omitempty"`
	Connections  int                         `json:"connections" yaml:"connections"`
	Health       *RedactedHealth             `json:"health,omitempty" yaml:"health,omitempty"`
	Console      map[string]any              `json:"console,omitempty" yaml:"console,omitempty"`
}

// RedactedHealth is a [Health] without its token.
type RedactedHealth struct {
	Listen string `json:"listen,omitempty" yaml:"listen,omitempty"`
	Token  string `json:"token,omitempty" yaml:"token,omitempty"`
}

// RedactedDatabase is a [Database] without its password.
type RedactedDatabase struct {
	URL        string            `json:"url" yaml:"url"`
	Schema     string            `json:"schema,omitempty" yaml:"schema,omitempty"`
	MaxLogSize int               `json:"max_log_size,omitempty" yaml:"max_log_size,omitempty"`
	Home       string            `json:"home,omitempty" yaml:"home,omitempty"`
	Engine     string            `json:"engine" yaml:"engine"`
	Table      string            `json:"table,omitempty" yaml:"table,omitempty"`
	Layout     string            `json:"layout,omitempty" yaml:"layout,omitempty"`
	Columns    map[string]string `json:"columns,omitempty" yaml:"columns,omitempty"`
	OrderBy    []string          `json:"order_by,omitempty" yaml:"order_by,omitempty,flow"`
	Status     map[string]any    `json:"status,omitempty" yaml:"status,omitempty"` // a value, or several
	Delete     bool              `json:"delete,omitempty" yaml:"delete,omitempty"`
	Default    map[string]string `json:"default,omitempty" yaml:"default,omitempty"`
	WireID     string            `json:"wire_id,omitempty" yaml:"wire_id,omitempty"`
	Shards     int               `json:"shards,omitempty" yaml:"shards,omitempty"`
	Retention  string            `json:"retention,omitempty" yaml:"retention,omitempty"`
}

// RedactedFeed is a [Feed] with its defaults.
type RedactedFeed struct {
	Database string          `json:"database" yaml:"database"`
	Order    string          `json:"order" yaml:"order"`
	Create   string          `json:"create,omitempty" yaml:"create,omitempty"`
	Only     *RedactedMatch  `json:"only,omitempty" yaml:"only,omitempty"`
	Relay    map[string]any  `json:"relay" yaml:"relay"`
	Routes   []RedactedRoute `json:"routes" yaml:"routes"`
}

// RedactedMatch is a [route.Match].
type RedactedMatch struct {
	Types   []string `json:"types,omitempty" yaml:"types,omitempty,flow"`
	Topics  []string `json:"topics,omitempty" yaml:"topics,omitempty,flow"`
	Tenants []string `json:"tenants,omitempty" yaml:"tenants,omitempty,flow"`
}

// RedactedRoute is a [route.Rule] with its destination.
type RedactedRoute struct {
	RedactedMatch `yaml:",inline"`
	Destination   string `json:"destination,omitempty" yaml:"destination,omitempty"`
	Name          string `json:"name,omitempty" yaml:"name,omitempty"`
	ID            string `json:"id,omitempty" yaml:"id,omitempty"`
	Drop          bool   `json:"drop,omitempty" yaml:"drop,omitempty"`
}

// YAML returns the configuration as a file.
func (r Redacted) YAML() ([]byte, error) { return yaml.Marshal(r) }

// Redacted returns the configuration for display.
func (f *File) Redacted() Redacted {
	r := Redacted{make(map[string]RedactedDatabase), make(map[string]map[string]any), make(map[string]RedactedFeed), nil, f.budget(len(f.Feeds)), nil, nil}
	if f.Health != (Health{}) {
		r.Health = &RedactedHealth{Listen: f.Health.Listen}
		if f.Health.Token != "" {
			r.Health.Token = hiddenText
		}
	}
	if shown := redactConsole(f.Console); len(shown) > 0 {
		r.Console = shown
	}
	for name, p := range f.Reconcilers {
		if r.Reconcilers == nil {
			r.Reconcilers = make(map[string]map[string]any)
		}
		r.Reconcilers[name] = f.showReconciler(p)
	}
	for name, d := range f.Databases {
		shown := RedactedDatabase{URL: RedactURL(d.URL), Schema: d.Schema, MaxLogSize: d.MaxLogSize, Home: d.Home, Engine: d.EngineName()}
		if d.Schema == "" && shown.Engine == EngineLog {
			shown.Schema = defaultSchema
		}
		d.Table.show(&shown)
		r.Databases[name] = shown
	}
	for name, d := range f.Destinations {
		r.Destinations[name] = f.redactDestination("destinations."+name, d)
	}
	for name, feed := range f.Feeds {
		database, _ := choose("database", feed.Database, f.Databases)
		shown := RedactedFeed{Database: database, Order: cmp.Or(feed.Order, relay.Strict), Create: feed.Create, Relay: make(map[string]any)}
		if len(feed.Only.Types)+len(feed.Only.Topics)+len(feed.Only.Tenants) > 0 {
			only := RedactedMatch(feed.Only)
			shown.Only = &only
		}
		for _, o := range relayOptions {
			if !o.said(&feed.Relay) {
				continue
			}
			section, key := o.section()
			into := shown.Relay
			if section != "" {
				if shown.Relay[section] == nil {
					shown.Relay[section] = make(map[string]any)
				}
				into, _ = shown.Relay[section].(map[string]any)
			}
			into[key] = o.show(feed)
		}
		for _, rule := range f.rules(feed) {
			shown.Routes = append(shown.Routes, redactRule(rule))
		}
		r.Feeds[name] = shown
	}
	return r
}

func redactRule(rule route.Rule) RedactedRoute {
	shown := RedactedRoute{RedactedMatch(rule.Match), rule.Destination, rule.Name, rule.ID, rule.Drop}
	if shown.ID == "" && !rule.Drop {
		shown.ID = "{id}"
	}
	return shown
}

// show returns the field as it would stand in a file.
func (o *relayOption) show(feed Feed) any {
	o.fill(&feed.Relay)
	if o.number != nil {
		return *o.number(&feed.Relay)
	}
	if o.series != nil {
		var shown []string
		for _, d := range *o.series(&feed.Relay) {
			shown = append(shown, d.String())
		}
		return shown
	}
	return o.duration(&feed.Relay).String()
}

func (f *File) redactDestination(path string, d Destination) map[string]any {
	shown := map[string]any{"url": RedactURL(d.URL)}
	driver, err := d.Driver()
	if err != nil {
		return shown
	}
	shown["broker"] = driver.Name
	for _, o := range append(broker.Common(), driver.Options...) {
		value, set := d.Options[o.Name]
		switch {
		case !set && (o.Default == "" || forConsumers(o.Name)):
		case set && (o.Kind == broker.Secret || f.source.hidden[path+"."+o.Name]):
			shown[o.Name] = hiddenText
		case set:
			shown[o.Name] = typed(o.Kind, value)
		default:
			shown[o.Name] = typed(o.Kind, o.Default)
		}
	}
	return shown
}

// typed converts the value of an option to the type that it would have in a file.
func typed(kind broker.Kind, value string) any {
	switch kind {
	case broker.Int:
		if n, err := strconv.Atoi(value); err == nil {
			return n
		}
	case broker.Bool:
		if b, err := strconv.ParseBool(value); err == nil {
			return b
		}
	case broker.List:
		return strings.Split(value, ",")
	case broker.Text, broker.Secret, broker.Duration:
	}
	return value
}

const secretWords = `(?:pass|secret|token|key|sig|auth|cred)`

// The patterns hide too much rather than too little: a password may contain any character, also
// those that should have been escaped.
var (
	pairSecret  = regexp.MustCompile(`(?i)(\w*` + secretWords + `\w*\s*=\s*)('(?:[^'\\]|\\.)*'?|\S*)`)
	querySecret = regexp.MustCompile(`(?i)([?&][^=&#]*` + secretWords + `[^=&#]*=)[^&#]*`)
	userSecret  = regexp.MustCompile(`^([a-zA-Z0-9+.-]+://)([^:@/?#]*)(:.*)?@`)
)

// RedactURL returns an address without its passwords and tokens, for logs.
func RedactURL(address string) string {
	if !strings.Contains(address, "://") {
		return pairSecret.ReplaceAllString(address, "${1}"+hiddenText)
	}
	address = userSecret.ReplaceAllStringFunc(address, func(match string) string {
		part := userSecret.FindStringSubmatch(match)
		switch {
		case part[3] != "":
			return part[1] + part[2] + ":" + hiddenText + "@"
		case strings.HasPrefix(part[1], "postgres"), isMySQL(part[1]):
			return match
		}
		return part[1] + hiddenText + "@" // some brokers take a token as the user name
	})
	return querySecret.ReplaceAllString(address, "${1}"+hiddenText)
}
