package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/relay"
)

// object is a JSON object, printed with its keys in alphabetical order.
type object = map[string]any

const (
	nameForms     = `^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$`
	variableForm  = `\$\{`
	durationForms = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`
)

// Schema returns the JSON Schema (2020-12) of the configuration file, for editors and for checks
// without the command. It covers the brokers that the program imports.
func Schema() []byte {
	defs := object{"match": matchSchema(), "relay": relaySchema(), "route": routeSchema(), "feed": feedSchema(), "reconciler": reconcilerSchema()}
	schema := object{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"title":       "Postrider",
		"description": "Databases, destinations, and the feeds that carry messages between them.",
		"$defs":       defs,
	}
	var refs []any
	for _, d := range broker.Drivers() {
		name := "destination_" + d.Name
		defs[name] = driverSchema(d)
		refs = append(refs, ref(name))
	}
	defs["destination"] = destinationSchema(refs)
	merge(schema, strictObject(object{
		"databases":    namedBy("Databases that hold messages, by name.", databaseSchema()),
		"destinations": namedBy("Brokers that messages are sent to, by name.", ref("destination")),
		"feeds":        namedBy("Connections from databases to destinations, by name.", ref("feed")),
		"reconcilers":  with(namedBy("Jobs that find missing effects and send their messages again, by name.", ref("reconciler")), "minProperties", 0),
		"connections":  number("Maximum number of connections that a process keeps open to all databases together. Default: 4 per feed.", 2),
		"health": strictObject(object{
			"listen": with(text("Host and port for /livez, /readyz and /metrics. Default: none."), "examples", []string{"127.0.0.1:8710"}),
			"token":  text("Bearer token that callers must send. Required if other machines can reach listen."),
		}),
		"console": consoleSchema(),
	}, "databases", "destinations", "feeds"))
	data, err := json.MarshalIndent(schema, "", "  ")
	if err != nil {
		panic(err) // unreachable: maps, lists and strings always marshal
	}
	return append(data, '\n')
}

func databaseSchema() object {
	properties := tableSchema()
	merge(properties, object{
		"url":    text("Address, as URL or key=value pairs, such as \"${DATABASE_URL}\". Schemes: postgres, postgresql, mysql, mariadb."),
		"schema": with(text("Schema of postrider's objects. With the classic engine, the default is the connection's."), "default", defaultSchema),
		"max_log_size": object{"type": "integer", "minimum": 1,
			"description": "Size in bytes from which the log deletes delivered messages before the end of their retention: relays empty all slots that every feed has passed. Default: no limit."},
		"home": with(text("Name of the database's environment, such as production. The first relay records it in the log. Relays with another home, or none, send nothing, so that a copy of the server does not send what the original sends."), "maxLength", 100),
	})
	return strictObject(properties, "url")
}

func feedSchema() object {
	return with(strictObject(object{
		"database":    text("Source database. Default: the only one."),
		"destination": text("Destination of routes that name none. Default: the only one."),
		"only":        with(ref("match"), "description", "Messages to deliver. The log counts all others as done, the classic engine does not touch their rows."),
		"order": object{"enum": []string{relay.Strict, relay.Skip}, "default": relay.Strict,
			"description": "strict: later messages of a key wait for one that fails. skip: they overtake it."},
		"create": text("Where the feed begins if it does not exist: now, oldest or an RFC 3339 time. Default: only the first feed of a database is created, with the oldest message."),
		"relay":  with(ref("relay"), "description", "Tunes the relay."),
		"routes": object{"type": "array", "minItems": 1, "items": ref("route"),
			"description": "The first match decides. Default: everything goes to the destination."},
	}), "type", []string{"object", "null"})
}

func matchSchema() object { return strictObject(matchProperties()) }

func matchProperties() object {
	list := func(what string) object {
		return object{
			"description": "Patterns for the message's " + what + "; * stands for any characters. Default: all.",
			"anyOf":       []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}},
		}
	}
	return object{"types": list("type"), "topics": list("topic"), "tenants": list("tenant")}
}

func routeSchema() object {
	placeholders := "{" + strings.Join(route.Placeholders(), "}, {") + "}"
	properties := matchProperties()
	merge(properties, object{
		"destination": text("Where the messages go. Default: the feed's destination."),
		"name":        text("Topic, subject, queue or stream, with placeholders: " + placeholders + ". Default: the message's topic, else what the broker makes of aggregate and type."),
		"id": with(with(text("ID that the broker sees. It contains {id}, and may contain the other placeholders."), "default", "{id}"),
			"examples", []string{"outbox-{id}", "verify_{id}"}),
		"drop": with(boolean("Count the messages as done without sending them."), "default", false),
	})
	return strictObject(properties)
}

func relaySchema() object {
	properties := make(object)
	sections := make(map[string]object)
	for _, o := range relayOptions {
		section, key := o.section()
		into := properties
		if section != "" {
			if sections[section] == nil {
				sections[section] = make(object)
			}
			into = sections[section]
		}
		switch d := o.fallback.(type) {
		case time.Duration:
			into[key] = duration(o.doc)
			if d > 0 {
				into[key] = with(duration(o.doc), "default", d.String())
			}
		case nil:
			into[key] = object{"type": "array", "minItems": 1, "items": duration("A backoff."), "description": o.doc}
		default:
			into[key] = with(number(o.doc, 1), "default", d)
		}
	}
	for section, of := range sections {
		properties[section] = with(strictObject(of), "description", relaySections[section])
	}
	return strictObject(properties)
}

// driverSchema returns the schema of a destination of one driver.
func driverSchema(d broker.Driver) object {
	properties := object{
		"url":    text("Address. Schemes: " + strings.Join(d.Schemes, ", ") + "."),
		"broker": object{"enum": []string{d.Name}, "description": d.Doc},
	}
	for _, o := range append(broker.Common(), d.Options...) {
		properties[o.Name] = optionSchema(o)
	}
	return with(strictObject(properties, "url"), "description", d.Doc)
}

func optionSchema(o broker.Option) object {
	var s object
	switch o.Kind {
	case broker.Int:
		s = object{"description": o.Doc, "anyOf": []any{object{"type": "integer"}, variables()}}
	case broker.Bool:
		s = boolean(o.Doc)
	case broker.Duration:
		s = duration(o.Doc)
	case broker.List:
		s = object{"description": o.Doc, "anyOf": []any{object{"type": "string"}, object{"type": "array", "items": object{"type": "string"}}}}
	case broker.Text, broker.Secret:
		s = text(o.Doc)
	}
	if len(o.Values) > 0 {
		s = object{"description": o.Doc, "anyOf": []any{object{"enum": o.Values}, variables()}}
	}
	if o.Default != "" {
		s["default"] = typed(o.Kind, o.Default)
	}
	return s
}

// destinationSchema selects the driver's schema by broker or URL scheme. If a variable hides both,
// any driver's schema matches.
func destinationSchema(refs []any) object {
	var chosen any = object{"anyOf": refs}
	for _, d := range slices.Backward(broker.Drivers()) {
		schemes := make([]string, len(d.Schemes))
		for i, scheme := range d.Schemes {
			schemes[i] = regexp.QuoteMeta(scheme)
		}
		chosen = object{
			"if": object{"anyOf": []any{
				object{"required": []string{"broker"}, "properties": object{"broker": object{"const": d.Name}}},
				object{"required": []string{"url"}, "not": object{"required": []string{"broker"}},
					"properties": object{"url": object{"type": "string", "pattern": fmt.Sprintf("^(%s):", strings.Join(schemes, "|"))}}},
			}},
			"then": ref("destination_" + d.Name),
			"else": chosen,
		}
	}
	return object{"type": "object", "required": []string{"url"}, "allOf": []any{chosen}}
}

func ref(name string) object { return object{"$ref": "#/$defs/" + name} }

func strictObject(properties object, required ...string) object {
	s := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		s["required"] = required
	}
	return s
}

func namedBy(doc string, of object) object {
	return object{"type": "object", "description": doc, "minProperties": 1, "propertyNames": object{"pattern": nameForms}, "additionalProperties": of}
}

// text also accepts numbers and booleans, which are read as they are written.
func text(doc string) object {
	return object{"type": []string{"string", "number", "boolean"}, "description": doc}
}

func number(doc string, least int) object {
	return object{"description": doc, "anyOf": []any{object{"type": "integer", "minimum": least}, variables()}}
}

func boolean(doc string) object {
	return object{"description": doc, "anyOf": []any{object{"type": "boolean"}, variables()}}
}

func duration(doc string) object {
	return object{"description": doc, "anyOf": []any{object{"type": "string", "pattern": durationForms}, variables()}}
}

// variables matches a string with a variable, whose value is unknown here.
func variables() object { return object{"type": "string", "pattern": variableForm} }

func with(o object, key string, value any) object {
	o[key] = value
	return o
}

func merge(into, from object) {
	for key, value := range from {
		into[key] = value
	}
}
