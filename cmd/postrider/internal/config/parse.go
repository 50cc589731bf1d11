package config

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
)

// Parse reads a configuration. The name of the file is used in mistakes, and relative paths of
// files start at its folder. In values, ${NAME} is replaced by what env returns, ${NAME:-default}
// by the default if env returns nothing, and ${file:PATH} by the content of the file. Keys are not
// expanded. The error is of type [Mistakes], and holds all of them.
func Parse(name string, data []byte, env func(string) (string, bool)) (*File, error) {
	r := &reader{
		source:   source{name: name, places: map[string]place{"": {1, 1}}, hidden: make(map[string]bool)},
		expander: expander{env: env, folder: filepath.Dir(name)},
	}
	root, ok := r.document(data)
	if !ok {
		return nil, r.mistakes.asError()
	}
	f := r.file(root)
	f.source = r.source
	// Do not check values that could not be read. If one route could not be read, do not check the
	// others of its feed either: the checks compare routes with each other.
	unread := make(map[string]bool)
	for _, m := range r.mistakes {
		unread[m.Path] = true
		if routes, _, ok := strings.Cut(m.Path, ".routes["); ok {
			for i := range f.Feeds[strings.TrimPrefix(routes, "feeds.")].Routes {
				unread[item(routes+".routes", i)] = true
			}
		}
	}
	for _, m := range f.check() {
		if !unread[m.Path] {
			r.mistakes = append(r.mistakes, m)
		}
	}
	if err := r.mistakes.asError(); err != nil {
		return nil, err
	}
	return f, nil
}

var yamlLine = regexp.MustCompile(`^line (\d+): `)

// document returns the root node of the file.
func (r *reader) document(data []byte) (*yaml.Node, bool) {
	if len(data) > maxFile {
		r.wrong("", "the file is larger than %d bytes", maxFile)
		return nil, false
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		return &yaml.Node{Kind: yaml.MappingNode, Line: 1, Column: 1}, true
	}
	if err == nil {
		if err = decoder.Decode(&second); err == nil {
			r.wrongAt(&second, "", "a second document begins here: want one")
			return nil, false
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		text, at := strings.TrimPrefix(err.Error(), "yaml: "), place{1, 1}
		if found := yamlLine.FindStringSubmatch(text); found != nil {
			at.line, _ = strconv.Atoi(found[1])
			text = text[len(found[0]):]
		}
		r.places[""] = at
		r.wrong("", "this is not YAML: %s", text)
		return nil, false
	}
	if r.reject(&document); len(r.mistakes) > 0 {
		return nil, false
	}
	return document.Content[0], true
}

func (r *reader) file(n *yaml.Node) *File {
	f := &File{Databases: make(map[string]Database), Destinations: make(map[string]Destination), Feeds: make(map[string]Feed)}
	r.fields(n, "", map[string]func(*yaml.Node, string){
		"databases": func(n *yaml.Node, path string) {
			r.named(n, path, func(name string, n *yaml.Node, path string) { f.Databases[name] = r.database(n, path) })
		},
		"destinations": func(n *yaml.Node, path string) {
			r.named(n, path, func(name string, n *yaml.Node, path string) { f.Destinations[name] = r.destination(n, path) })
		},
		"feeds": func(n *yaml.Node, path string) {
			r.named(n, path, func(name string, n *yaml.Node, path string) { f.Feeds[name] = r.feed(n, path) })
		},
		"reconcilers": func(n *yaml.Node, path string) {
			r.named(n, path, func(name string, n *yaml.Node, path string) {
				if f.Reconcilers == nil {
					f.Reconcilers = make(map[string]Reconciler)
				}
				f.Reconcilers[name] = r.reconciler(n, path)
			})
		},
		"connections": r.numberInto(&f.Connections),
		"health": func(n *yaml.Node, path string) {
			r.fields(n, path, map[string]func(*yaml.Node, string){"listen": r.textInto(&f.Health.Listen), "token": r.textInto(&f.Health.Token)})
		},
		"console": func(n *yaml.Node, path string) { f.Console = r.console(n, path) },
	})
	return f
}

// destination reads the common settings of a destination. All other keys are options of its driver.
func (r *reader) destination(n *yaml.Node, path string) Destination {
	d := Destination{Options: make(map[string]string)}
	type entry struct {
		key   *yaml.Node
		value *yaml.Node
		path  string
	}
	var entries []entry
	r.visit(n, path, func(key string, keyNode, value *yaml.Node, path string) {
		switch key {
		case "url":
			d.URL, _ = r.text(value, path)
		case "broker":
			d.Broker, _ = r.text(value, path)
		default:
			entries = append(entries, entry{keyNode, value, path})
		}
	})
	driver, err := d.Driver()
	if err != nil {
		return d // the options are unknown without a driver
	}
	options := append(broker.Common(), driver.Options...)
	known := []string{"url", "broker"}
	kinds := make(map[string]broker.Kind)
	for _, o := range options {
		known = append(known, o.Name)
		kinds[o.Name] = o.Kind
	}
	for _, e := range entries {
		kind, ok := kinds[e.key.Value]
		if !ok {
			r.unknown(e.key, e.path, known)
			continue
		}
		if kind == broker.List && e.value.Kind == yaml.SequenceNode {
			var texts []string
			r.textsInto(&texts)(e.value, e.path)
			for i, text := range texts {
				if strings.Contains(text, ",") {
					r.wrong(item(e.path, i), "the value contains a comma")
				}
			}
			d.Options[e.key.Value] = strings.Join(texts, ",")
		} else if value, ok := r.text(e.value, e.path); ok {
			d.Options[e.key.Value] = value
		}
	}
	return d
}

func (r *reader) feed(n *yaml.Node, path string) Feed {
	var f Feed
	relay := make(map[string]func(*yaml.Node, string))
	sections := make(map[string]map[string]func(*yaml.Node, string))
	for _, o := range relayOptions {
		section, key := o.section()
		known := relay
		if section != "" {
			if known = sections[section]; known == nil {
				known = make(map[string]func(*yaml.Node, string))
				sections[section] = known
				relay[section] = func(n *yaml.Node, path string) { r.fields(n, path, known) }
			}
		}
		switch {
		case o.duration != nil:
			known[key] = r.durationInto(o.duration(&f.Relay))
		case o.series != nil:
			known[key] = r.durationsInto(o.series(&f.Relay))
		default:
			known[key] = r.numberInto(o.number(&f.Relay))
		}
	}
	r.fields(n, path, map[string]func(*yaml.Node, string){
		"database":    r.textInto(&f.Database),
		"destination": r.textInto(&f.Destination),
		"order":       r.textInto(&f.Order),
		"create": func(n *yaml.Node, path string) {
			r.textInto(&f.Create)(n, path)
			if _, err := ParseOrigin(f.Create); err != nil && n.Kind == yaml.ScalarNode {
				r.wrong(path, "%s", err)
			}
		},
		"only":  func(n *yaml.Node, path string) { r.fields(n, path, r.match(&f.Only)) },
		"relay": func(n *yaml.Node, path string) { r.fields(n, path, relay) },
		"routes": func(n *yaml.Node, path string) {
			if isNull(n) || n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
				r.wrong(path, "the list is empty: leave the key out to send everything to one destination")
				return
			}
			r.items(n, path, func(_ int, n *yaml.Node, path string) { f.Routes = append(f.Routes, r.route(n, path)) })
		},
	})
	return f
}

func (r *reader) route(n *yaml.Node, path string) route.Rule {
	var rule route.Rule
	known := r.match(&rule.Match)
	known["destination"] = r.textInto(&rule.Destination)
	known["name"] = r.textInto(&rule.Name)
	known["id"] = r.textInto(&rule.ID)
	known["drop"] = r.boolInto(&rule.Drop)
	r.fields(n, path, known)
	return rule
}

func (r *reader) match(m *route.Match) map[string]func(*yaml.Node, string) {
	return map[string]func(*yaml.Node, string){
		"types":   r.textsInto(&m.Types),
		"topics":  r.textsInto(&m.Topics),
		"tenants": r.textsInto(&m.Tenants),
	}
}
