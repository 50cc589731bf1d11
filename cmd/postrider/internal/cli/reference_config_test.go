package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/postrider/postrider/internal/docpage"
)

// schema is the part of JSON Schema that the configuration's uses.
type schema struct {
	Ref         string             `json:"$ref"`
	Defs        map[string]*schema `json:"$defs"`
	Type        any                `json:"type"`
	Description string             `json:"description"`
	Default     any                `json:"default"`
	Enum        []any              `json:"enum"`
	Pattern     string             `json:"pattern"`
	AnyOf       []*schema          `json:"anyOf"`
	Items       *schema            `json:"items"`
	Required    []string           `json:"required"`
	Properties  map[string]*schema `json:"properties"`
	Others      json.RawMessage    `json:"additionalProperties"`
}

// named is the schema of values under names that users choose, if that is what it is.
func (s *schema) named() *schema {
	var of schema
	if len(s.Others) == 0 || s.Others[0] != '{' || json.Unmarshal(s.Others, &of) != nil {
		return nil
	}
	return &of
}

// parts are the tables of the page: what stands at which place of the file.
var parts = []struct {
	title, path, def, intro string
}{
	{"The file", "", "", "Three parts are required, the others have defaults."},
	{"databases", "databases.NAME", "", "Where messages come from. All but `url`, `schema` and `engine` is for tables: [adopt a table](../moving/adopt-a-table.md)."},
	{"databases: columns", "databases.NAME.columns", "", "What the columns of a table are called. Relays write `status`, `attempts`, `next_attempt`, `last_error`, `claimed_at`, `claimed_by`, `published_at` and `updated_at`."},
	{"databases: status", "databases.NAME.status", "", "What the words of a table's status are."},
	{"databases: default", "databases.NAME.default", "", "Values for all rows of a table without such a column."},
	{"destinations", "destinations.NAME", "destination", ""},
	{"feeds", "feeds.NAME", "feed", "The ways between databases and destinations."},
	{"feeds: only", "feeds.NAME.only", "match", "A filter. Reconcilers have it too."},
	{"feeds: routes", "feeds.NAME.routes[]", "route", "A list; the first route that matches a message decides."},
	{"feeds: relay", "feeds.NAME.relay", "relay", "Tunes the relay of a feed. `postrider relay` has a flag for each."},
	{"reconcilers", "reconcilers.NAME", "reconciler", "Jobs that look for what is missing: [reconcile](../reconcile.md)."},
	{"health", "health", "", "Where orchestrators and Prometheus ask."},
	{"console", "console", "", "The [web console](../console.md)."},
	{"console: tokens", "console.tokens.NAME", "", "Who may come in with a fixed secret: [access](../console-access.md)."},
	{"console: oidc", "console.oidc", "", "Sign in with OpenID Connect."},
	{"console: proxy", "console.proxy", "", "Believe a proxy that has asked already."},
}

// The reference of the configuration is what its JSON Schema says.
func TestConfigurationReference(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := execute(t.Context(), streams{in: strings.NewReader(""), out: &out, err: &out}, []string{"config", "schema"}); code != exitOK {
		t.Fatal(out.String())
	}
	root := &schema{}
	if err := json.Unmarshal(out.Bytes(), root); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, part := range parts {
		if part.def == "destination" {
			describeDestinations(&b, root)
			continue
		}
		at := root.Defs[part.def]
		if part.def == "" {
			at = root.find(part.path)
		}
		if at == nil {
			t.Fatalf("the schema has nothing at %q", part.path)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", part.title, part.intro)
		if part.path != "" {
			fmt.Fprintf(&b, "\nAt `%s`:\n", part.path)
		}
		b.WriteString("\n" + keyTable(at, part.path, nil))
	}
	docpage.Check(t, *update, reference+"configuration.md", "TestConfigurationReference, in cmd/postrider/internal/cli", b.String())
}

// find follows a path of keys, in which NAME stands for any.
func (s *schema) find(path string) *schema {
	for key := range strings.SplitSeq(path, ".") {
		switch {
		case s == nil || key == "":
		case key == "NAME":
			s = s.named()
		default:
			s = s.Properties[key]
		}
	}
	return s
}

// describeDestinations has what all brokers understand first, and then what each understands alone.
func describeDestinations(b *strings.Builder, root *schema) {
	var brokers []string
	common := &schema{Required: []string{"url"}, Properties: make(map[string]*schema)}
	for name, def := range root.Defs {
		if broker, ok := strings.CutPrefix(name, "destination_"); ok {
			brokers = append(brokers, broker)
			for key, of := range def.Properties {
				common.Properties[key] = of
			}
		}
	}
	slices.Sort(brokers)
	for key := range common.Properties {
		if slices.ContainsFunc(brokers, func(name string) bool { return root.Defs["destination_"+name].Properties[key] == nil }) {
			delete(common.Properties, key)
		}
	}
	common.Properties["url"] = &schema{Type: "string", Description: "Address. Its scheme says which broker it is, unless broker does."}
	common.Properties["broker"] = &schema{Type: "string", Description: "One of " + strings.Join(brokers, ", ") + ". Default: by the scheme of the URL."}
	fmt.Fprintf(b, "\n## destinations\n\nWhere messages go. At `destinations.NAME`, for every broker:\n\n%s", keyTable(common, "destinations.NAME", nil))
	for _, name := range brokers {
		def := root.Defs["destination_"+name]
		_, schemes, _ := strings.Cut(strings.TrimSuffix(def.Properties["url"].Description, "."), "Schemes: ")
		fmt.Fprintf(b, "\n### %s\n\n%s Schemes: `%s`.", name, docpage.Text(def.Description), strings.ReplaceAll(schemes, ", ", "`, `"))
		if page := "../brokers/" + name + ".md"; exists(reference + page) {
			fmt.Fprintf(b, " More: [%s](%s).", name, page)
		}
		b.WriteString("\n")
		if table := keyTable(def, "destinations.NAME", common.Properties); table != "" {
			b.WriteString("\n" + table)
		}
	}
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// keyTable lists the keys of an object but those that were listed before, required ones first.
func keyTable(s *schema, path string, before map[string]*schema) string {
	keys := slices.Sorted(maps.Keys(s.Properties))
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(s.place(a), s.place(b)) })
	keys = slices.DeleteFunc(keys, func(key string) bool { return before[key] != nil })
	if len(keys) == 0 {
		return ""
	}
	rows := "| key | type | default | meaning |\n|---|---|---|---|\n"
	for _, key := range keys {
		of := s.Properties[key]
		kind, preset, meaning := of.kind(), "", docpage.Cell(of.Description)
		if text, said, ok := strings.Cut(meaning, " Default: "); ok {
			meaning, preset = text, strings.TrimSuffix(said, ".")
		}
		switch {
		case of.Default != nil:
			preset = "`" + plainDuration(fmt.Sprint(plainNumber(of.Default))) + "`"
		case slices.Contains(s.Required, key):
			preset = "required"
		}
		for _, part := range parts {
			if whole := strings.TrimPrefix(path+"."+key, "."); (kind == "object" || kind == "map") && (part.path == whole || part.path == whole+".NAME") {
				kind = fmt.Sprintf("[%s](#%s)", kind, strings.ReplaceAll(part.title, ": ", "-"))
				meaning = cmp.Or(meaning, part.intro)
			}
		}
		rows += fmt.Sprintf("| `%s` | %s | %s | %s |\n", key, kind, preset, meaning)
	}
	return rows
}

// place is that of a required key in its list, and that of all others behind it.
func (s *schema) place(key string) int {
	if i := slices.Index(s.Required, key); i >= 0 {
		return i
	}
	return len(s.Required)
}

// plainNumber writes a whole number as one.
func plainNumber(value any) any {
	if n, ok := value.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return value
}

// kind says in a word what a value is.
func (s *schema) kind() string {
	switch {
	case s.Ref != "":
		name := strings.TrimPrefix(s.Ref, "#/$defs/")
		return map[string]string{
			"match": "[filter](#feeds-only)", "relay": "[relay](#feeds-relay)", "route": "[route](#feeds-routes)",
			"feed": "[feed](#feeds)", "reconciler": "[reconciler](#reconcilers)", "destination": "[destination](#destinations)",
		}[name]
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, value := range s.Enum {
			words[i] = fmt.Sprintf("`%v`", value)
		}
		return strings.Join(words, ", ")
	case len(s.AnyOf) == 2 && s.AnyOf[1].Items != nil:
		return "list"
	case len(s.AnyOf) > 0:
		return s.AnyOf[0].kind() // the other is ${VARIABLE}
	case strings.Contains(s.Pattern, "ms|s|m|h"):
		return "duration"
	case s.Items != nil:
		return "list of " + s.Items.kind()
	case s.named() != nil && s.named().Ref != "":
		return "map of " + s.named().kind()
	case s.named() != nil:
		return "map"
	}
	if kinds, ok := s.Type.([]any); ok {
		return fmt.Sprint(kinds[0])
	}
	return fmt.Sprint(s.Type)
}
