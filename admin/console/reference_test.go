package console_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/docpage"
)

// TestReference keeps the page about the API as the console describes it.
func TestReference(t *testing.T) {
	var doc openAPI
	if err := json.Unmarshal(inMemory(t).document("json"), &doc); err != nil {
		t.Fatal(err)
	}
	var index, b strings.Builder
	index.WriteString("| request | least role | what it does |\n|---|---|---|\n")
	b.WriteString("\n## Requests\n")
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range []string{"get", "post", "put", "delete"} {
			op := doc.Paths[path][method]
			if op == nil {
				continue
			}
			title := strings.ToUpper(method) + " " + path
			role, more, _ := strings.Cut(strings.TrimPrefix(op.Description, "Least role: "), ". ")
			role = strings.TrimSuffix(role, ".")
			fmt.Fprintf(&index, "| [`%s`](#%s) | %s | %s |\n", title, anchor(title), role, docpage.Cell(op.Summary))
			fmt.Fprintf(&b, "\n### %s\n\n%s. Least role: %s. %s", title, docpage.Text(op.Summary), role, docpage.Text(more))
			op.write(&b)
		}
	}
	b.WriteString("\n## Objects\n\nA field with a `?` can be missing.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		fmt.Fprintf(&b, "\n### %s\n\n%s", name, doc.Components.Schemas[name].fields())
	}
	page := strings.ReplaceAll(index.String()+b.String(), " \n", "\n")
	docpage.Check(t, *update, "../../docs/reference/http-api.md", "TestReference, in admin/console", page)
}

// openAPI is what the page shows of the document.
type openAPI struct {
	Paths      map[string]map[string]*operation
	Components struct{ Schemas map[string]*object }
}

type operation struct {
	Summary, Description string
	Parameters           []struct {
		Name, In, Description string
		Required              bool
		Schema                *object
	}
	RequestBody *content
	Responses   map[string]*content
}

type content struct {
	Content map[string]struct{ Schema *object }
}

type object struct {
	Ref                  string `json:"$ref"`
	Type                 any
	Format, Description  string
	Default              any
	Enum                 []any
	Items                *object
	Properties           map[string]*object
	Required             []string
	AdditionalProperties json.RawMessage
}

// write lists what an operation takes and what it answers.
func (o *operation) write(b *strings.Builder) {
	b.WriteString("\n")
	rows := ""
	for _, p := range o.Parameters {
		if p.Name == "db" { // every request has it
			continue
		}
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", p.Name, p.In, p.Schema.kind(), p.Schema.note(p.Description))
	}
	if rows != "" {
		fmt.Fprintf(b, "\n| parameter | in | type | meaning |\n|---|---|---|---|\n%s", rows)
	}
	if o.RequestBody != nil {
		fmt.Fprintf(b, "\nBody: %s\n", o.RequestBody.kind())
	}
	fmt.Fprintf(b, "\nAnswer: %s\n", o.Responses["200"].kind())
}

// kind names the type of a body.
func (c *content) kind() string {
	if body, ok := c.Content["application/json"]; ok {
		return body.Schema.kind()
	}
	return "`" + strings.Join(slices.Sorted(maps.Keys(c.Content)), "`, `") + "`"
}

// fields is a table of an object's fields.
func (o *object) fields() string {
	if len(o.Properties) == 0 {
		return o.kind() + "\n"
	}
	rows := "| field | type | meaning |\n|---|---|---|\n"
	for _, name := range slices.Sorted(maps.Keys(o.Properties)) {
		of, mark := o.Properties[name], ""
		if !slices.Contains(o.Required, name) {
			mark = "?"
		}
		rows += fmt.Sprintf("| `%s`%s | %s | %s |\n", name, mark, of.kind(), of.note(""))
	}
	return rows
}

// note is what is to say about a value beside its type.
func (o *object) note(text string) string {
	text = docpage.Cell(cmp.Or(text, o.Description))
	if o.Default != nil {
		text = strings.TrimPrefix(fmt.Sprintf("%s; default: `%v`", text, o.Default), "; ")
	}
	return text
}

// kind says in a word what a value is.
func (o *object) kind() string {
	if o == nil {
		return ""
	}
	kind := fmt.Sprint(o.Type)
	if kinds, ok := o.Type.([]any); ok { // an empty list may be null
		kind = fmt.Sprint(kinds[0])
	}
	switch {
	case o.Ref != "":
		name := strings.TrimPrefix(o.Ref, "#/components/schemas/")
		return fmt.Sprintf("[%s](#%s)", name, anchor(name))
	case o.Items != nil:
		return "list of " + o.Items.kind()
	case len(o.Enum) > 0:
		words := make([]string, len(o.Enum))
		for i, value := range o.Enum {
			words[i] = fmt.Sprintf("`%v`", value)
		}
		return strings.Join(words, ", ")
	case o.Format == "date-time":
		return "time"
	case kind == "<nil>":
		return "any"
	case kind == "object":
		var of object
		if json.Unmarshal(o.AdditionalProperties, &of) == nil && (of.Type != nil || of.Ref != "") {
			return "object of " + of.kind()
		}
	}
	return kind
}

// anchor is how a heading is linked to.
func anchor(title string) string {
	return strings.NewReplacer(" ", "-", "/", "", "{", "", "}", "").Replace(strings.ToLower(title))
}
