package config

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// tableSchema returns the schema of the settings that only the classic engine has.
func tableSchema() object {
	columns, words := make(object), make(object)
	for _, c := range tableColumns {
		columns[c.key] = text(c.doc)
	}
	for _, word := range statusWords {
		words[word] = text(wordDocs[word])
	}
	words["pending"] = object{
		"description": "Values for pending rows; a row that becomes pending again gets the first one.",
		"anyOf":       []any{object{"type": []string{"string", "number", "boolean"}}, object{"type": "array", "minItems": 1, "items": object{"type": "string"}}},
	}
	return object{
		"engine": object{"enum": []string{EngineLog, EngineClassic},
			"description": "log: postrider's own log, in PostgreSQL. classic: a table whose rows have a status. Default: log for postgres://, classic for mysql:// and mariadb://."},
		"table":   text("Table of messages, for the classic engine. Default: that of the layout, else postrider's own."),
		"layout":  object{"enum": TablePresets(), "description": "A known layout of the table: names of columns and values of the status. columns and status override it."},
		"columns": with(strictObject(columns), "description", "Names of columns, by what they hold. \"\" means that the table has none."),
		"order_by": object{"description": "Columns that define the delivery order. Default: that of the layout, else the ID.",
			"anyOf": []any{object{"type": "string"}, object{"type": "array", "minItems": 1, "items": object{"type": "string"}}}},
		"status": with(strictObject(words), "description", "Values of the status column, by their meaning."),
		"delete": with(boolean("Delete rows after delivery."), "default", false),
		"default": with(strictObject(object{
			"type": text("Type of messages."), "topic": text("Topic of messages."), "content_type": text("Content type of payloads."),
		}), "description", "Values for all rows of a table without such a column."),
		"wire_id":   with(text("ID that the broker sees, with {id} for the row's ID and {database} for an identifier of the database. Default: the message's own ID."), "examples", []string{"outbox-{database}-{id}"}),
		"shards":    with(number("Parts that the keys are divided into, and so the maximum number of relays that share the work. At most 256.", 1), "default", 8),
		"retention": duration("How long delivered rows are kept. Default: 168h in postrider's own table, forever elsewhere."),
	}
}

// show copies the settings of the table as they would stand in a file.
func (t *Table) show(into *RedactedDatabase) {
	into.Table, into.Layout, into.Columns, into.OrderBy, into.WireID, into.Shards = t.Name, t.Preset, t.Columns, t.OrderBy, t.WireID, t.Shards
	into.Delete = t.Delete
	for meaning, words := range t.Status {
		if into.Status == nil {
			into.Status = make(map[string]any)
		}
		if into.Status[meaning] = words; len(words) == 1 {
			into.Status[meaning] = words[0]
		}
	}
	if t.Retention > 0 {
		into.Retention = t.Retention.String()
	}
	for key, value := range map[string]string{"type": t.DefaultType, "topic": t.DefaultTopic, "content_type": t.DefaultContentType} {
		if value != "" {
			if into.Default == nil {
				into.Default = make(map[string]string)
			}
			into.Default[key] = value
		}
	}
}

// YAML returns the section of a configuration file that describes only this database. It writes the
// URL as it is, so the URL should contain a variable instead of a password.
func (d Database) YAML(name string) ([]byte, error) {
	shown := RedactedDatabase{URL: d.URL, Schema: d.Schema, MaxLogSize: d.MaxLogSize, Home: d.Home, Engine: d.EngineName()}
	d.Table.show(&shown)
	var b bytes.Buffer
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	err := encoder.Encode(map[string]map[string]RedactedDatabase{"databases": {name: shown}})
	return b.Bytes(), err
}
