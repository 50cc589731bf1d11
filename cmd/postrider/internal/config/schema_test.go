package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/postrider/postrider/relay"
)

// validator understands as much of JSON Schema as the schema uses. It stops at words that it does not know.
type validator struct{ defs map[string]any }

func (v *validator) check(schema map[string]any, value any) error {
	for word, arg := range schema {
		if err := v.word(schema, word, arg, value); err != nil {
			return err
		}
	}
	return nil
}

func (v *validator) word(schema map[string]any, word string, arg, value any) error {
	members, isObject := value.(map[string]any)
	text, isText := value.(string)
	items, isList := value.([]any)
	sub := as[map[string]any]
	switch word {
	case "$schema", "$defs", "title", "description", "default", "examples", "then", "else":
	case "$ref":
		return v.check(sub(v.defs[strings.TrimPrefix(as[string](arg), "#/$defs/")]), value)
	case "type":
		kinds, ok := arg.([]any)
		if !ok {
			kinds = []any{arg}
		}
		if !slices.ContainsFunc(kinds, func(kind any) bool { return hasType(as[string](kind), value) }) {
			return fmt.Errorf("%v is not of type %v", value, kinds)
		}
	case "properties":
		for name, s := range sub(arg) {
			if member, ok := members[name]; ok {
				if err := v.check(sub(s), member); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		}
	case "additionalProperties":
		properties, _ := schema["properties"].(map[string]any)
		for name, member := range members {
			if _, ok := properties[name]; ok {
				continue
			}
			if arg == false {
				return fmt.Errorf("%s is not allowed", name)
			}
			if err := v.check(sub(arg), member); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	case "propertyNames":
		for name := range members {
			if err := v.check(sub(arg), name); err != nil {
				return err
			}
		}
	case "required":
		for _, name := range as[[]any](arg) {
			if _, ok := members[as[string](name)]; isObject && !ok {
				return fmt.Errorf("%s is missing", name)
			}
		}
	case "minProperties":
		if isObject && float64(len(members)) < as[float64](arg) {
			return fmt.Errorf("too few members")
		}
	case "minItems":
		if isList && float64(len(items)) < as[float64](arg) {
			return fmt.Errorf("too few items")
		}
	case "items":
		for _, item := range items {
			if err := v.check(sub(arg), item); err != nil {
				return err
			}
		}
	case "minimum":
		if n, ok := value.(float64); ok && n < as[float64](arg) {
			return fmt.Errorf("%v is less than %v", n, arg)
		}
	case "pattern":
		if isText && !regexp.MustCompile(as[string](arg)).MatchString(text) {
			return fmt.Errorf("%q does not match %v", text, arg)
		}
	case "enum":
		if !slices.ContainsFunc(as[[]any](arg), func(one any) bool { return reflect.DeepEqual(one, value) }) {
			return fmt.Errorf("%v is none of %v", value, arg)
		}
	case "const":
		if !reflect.DeepEqual(arg, value) {
			return fmt.Errorf("%v is not %v", value, arg)
		}
	case "allOf":
		for _, s := range as[[]any](arg) {
			if err := v.check(sub(s), value); err != nil {
				return err
			}
		}
	case "anyOf":
		var last error
		for _, s := range as[[]any](arg) {
			if last = v.check(sub(s), value); last == nil {
				return nil
			}
		}
		return last
	case "not":
		if v.check(sub(arg), value) == nil {
			return fmt.Errorf("matches what it must not")
		}
	case "if":
		branch := "then"
		if v.check(sub(arg), value) != nil {
			branch = "else"
		}
		return v.check(sub(schema[branch]), value)
	default:
		return fmt.Errorf("the test does not know %q", word)
	}
	return nil
}

// as is for what a schema is known to be.
func as[T any](value any) T {
	v, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("%v is a %T", value, value))
	}
	return v
}

func hasType(kind string, value any) bool {
	switch v := value.(type) {
	case string:
		return kind == "string"
	case bool:
		return kind == "boolean"
	case float64:
		return kind == "number" || kind == "integer" && v == float64(int(v))
	case map[string]any:
		return kind == "object"
	case []any:
		return kind == "array"
	default:
		return kind == "null"
	}
}

func validateText(t *testing.T, text string) error {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return (&validator{as[map[string]any](schema["$defs"])}).check(schema, value)
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	asYAML, err := mustParse(t, good).Redacted().YAML()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		good, string(asYAML),
		"databases: {a: {url: x}}\ndestinations: {d: {url: '${URL}', window: 3}}\nfeeds: {default: }",
		"databases: {a: {url: x}}\ndestinations: {d: {url: '${URL}', broker: fake, window: '${W}', loud: true, wait: 1m30s}}\nfeeds: {default: {}}",
	} {
		if err := validateText(t, text); err != nil {
			t.Errorf("%v in\n%s", err, text)
		}
	}
}

func TestSchemaRefusesMistakes(t *testing.T) {
	for old, replacement := range map[string]string{
		"databases:":            "database:",
		"    order: strict":     "    ordr: strict",
		"order: strict":         "order: relaxed",
		"window: 9":             "windows: 9",
		"lease: 20s":            "lease: 20",
		"batch: ${BATCH}":       "batch: 0",
		"      batch: ${BATCH}": "      retry: {pauses: []}",
		"drop: true":            "drop: maybe",
		"[a, b]":                "{a: b}",
		"  default:":            "  de fault:",
		"types: [debug.*]":      "types: [[debug.*]]",
		"    url: fakes://other\n    hosts: [a, b]": "    url: 'stdout:'\n    hosts: [a, b]",
		"    url: fakes://other\n":                  "",
	} {
		if err := validateText(t, spoil(t, old, replacement)); err == nil {
			t.Errorf("%q was accepted", replacement)
		}
	}
}

// TestDefaultsAreThoseOfTheRelay holds that this package and package relay do not drift apart.
func TestDefaultsAreThoseOfTheRelay(t *testing.T) {
	data := string(Schema())
	for _, want := range []string{`"default": "10s"`, `"default": 4000`, `"default": "cloudevents"`, `"default": "postrider"`} {
		if !strings.Contains(data, want) {
			t.Errorf("the schema lacks %s", want)
		}
	}
	defaults := reflect.ValueOf(relay.Config{}.WithDefaults())
	if len(relayOptions) != defaults.NumField()-10-2+7 { // Feed, Name, Create, From, Beside, Destination, Force, NoInspection, Order, Logger; two sections of 5 and 2 options
		t.Error("a field of relay.Config has no option")
	}
	for _, o := range relayOptions {
		section, name, ok := strings.Cut(o.field, ".")
		field := defaults.FieldByName(section)
		if ok {
			field = field.FieldByName(name)
		}
		switch {
		case !field.IsValid():
			t.Errorf("relay.Config has no field %s", o.field)
		case o.fallback == nil || o.field == "Canary": // only a daemon sends them without being told to
		case fmt.Sprint(o.fallback) != fmt.Sprint(field.Interface()):
			t.Errorf("%s: default %v, but the relay's is %v", o.key, o.fallback, field.Interface())
		}
	}
}
