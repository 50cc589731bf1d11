package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/postrider/postrider"
)

// placeholders are the names that a template may contain in braces.
var placeholders = []string{"type", "topic", "tenant", "aggregate_type", "aggregate_id", "key", "routing_key", "id"}

// Placeholders returns the names that templates may contain in braces, such as "type" for {type}.
func Placeholders() []string { return slices.Clone(placeholders) }

// template is text with placeholders. Placeholder i stands between literals i and i+1.
type template struct {
	literals []string
	fields   []string
}

func parseTemplate(text string) (template, error) {
	var t template
	var errs []error
	if strings.ContainsFunc(text, isControl) {
		errs = append(errs, errors.New("it contains a control character"))
	}
	rest := text
	for {
		at := strings.IndexAny(rest, "{}")
		if at < 0 {
			t.literals = append(t.literals, rest)
			break
		}
		end := strings.IndexAny(rest[at+1:], "{}")
		if rest[at] == '}' || end < 0 || rest[at+1+end] == '{' {
			return template{}, errors.Join(append(errs, fmt.Errorf("unbalanced braces in %q", text))...)
		}
		name := rest[at+1 : at+1+end]
		if !slices.Contains(placeholders, name) {
			errs = append(errs, fmt.Errorf("there is no placeholder {%s}: want one of {%s}", name, strings.Join(placeholders, "}, {")))
		}
		t.literals = append(t.literals, rest[:at])
		t.fields = append(t.fields, name)
		rest = rest[at+end+2:]
	}
	if len(t.fields) == 0 && strings.TrimSpace(text) == "" {
		errs = append(errs, errors.New("it is blank"))
	}
	return t, errors.Join(errs...)
}

func (t *template) uses(field string) bool { return slices.Contains(t.fields, field) }

// dimensions returns the labels that the text depends on; all is false if it depends on other
// fields too.
func (t *template) dimensions() (d dimensions, all bool) {
	all = true
	for _, field := range t.fields {
		switch field {
		case "type":
			d.kind = true
		case "topic":
			d.topic = true
		case "tenant":
			d.tenant = true
		default:
			all = false
		}
	}
	return d, all
}

// render fills in the message's values. It refuses control characters: no broker allows them in a
// name or an ID, and in some protocols they terminate it. It also refuses empty values unless they
// are allowed, because "orders..created" is not a name that was meant.
func (t *template) render(m *postrider.Message, emptyAllowed bool) (string, error) {
	if len(t.fields) == 0 {
		return t.literals[0], nil
	}
	var memory [128]byte // on the stack, so that a name needs one allocation
	b := memory[:0]
	for i, field := range t.fields {
		value := fieldOf(m, field)
		if value == "" && !emptyAllowed {
			return "", fmt.Errorf("the message has no {%s}", field)
		}
		if err := checkValue(field, value); err != nil {
			return "", err
		}
		b = append(b, t.literals[i]...)
		b = append(b, value...)
	}
	return string(append(b, t.literals[len(t.fields)]...)), nil
}

func fieldOf(m *postrider.Message, field string) string {
	switch field {
	case "type":
		return m.Type
	case "topic":
		return m.Topic
	case "tenant":
		return m.TenantID
	case "aggregate_type":
		return m.AggregateType
	case "aggregate_id":
		return m.AggregateID
	case "key":
		return m.OrderKey()
	case "routing_key":
		return m.RoutingKey
	default:
		return m.ID.String()
	}
}

func checkValue(field, value string) error {
	if strings.ContainsFunc(value, isControl) {
		return fmt.Errorf("the message's {%s} contains a control character: %q", field, value)
	}
	return nil
}

func isControl(r rune) bool { return unicode.IsControl(r) }
