package route

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
)

// maxRules limits the work of checking rules against each other.
const maxRules = 1000

// ErrNoRoute is the error of a message that no rule matches.
var ErrNoRoute = errors.New("route: no rule matches")

// Rule states what happens to the messages that it matches.
type Rule struct {
	Match Match
	// Destination names where the messages go. Required unless Drop is set.
	Destination string
	// Name is the template for the name of the topic, subject, queue or stream: text with
	// placeholders such as {type}; see [Placeholders]. {key} is the ordering key. A message that
	// has no value for a placeholder is refused. Defaults to the message's topic or, if it has
	// none, to the default of the destination's format, usually the type.
	Name string
	// ID is the template for the ID that the broker sees, such as "outbox-{id}". It must contain
	// {id}, which makes it unique. Defaults to "{id}".
	ID string
	// Drop reports the messages as done without sending them.
	Drop bool
}

// RuleError is one mistake in a list of rules.
type RuleError struct {
	Rule  int    // index of the rule
	Field string // such as "name" or "types[2]"; empty means the whole rule
	Err   error
}

func (e *RuleError) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("rule %d: %v", e.Rule, e.Err)
	}
	return fmt.Sprintf("rule %d: %s: %v", e.Rule, e.Field, e.Err)
}

// Unwrap returns the underlying error.
func (e *RuleError) Unwrap() error { return e.Err }

// Decision states what happens to a message.
type Decision struct {
	Rule        int    // index of the rule that decided
	Destination string // where it goes
	Name        string // new value of Message.Topic; empty lets the destination choose the name
	ID          string // new value of Message.WireID; empty means the message's ID
	Drop        bool   // report it as done without sending it
}

// Table is a validated list of rules. It is safe for concurrent use.
type Table struct {
	rules       []rule
	dimensions  dimensions // all labels that a resolution depends on
	resolutions memo[resolution]
}

type rule struct {
	Rule
	name, id template
	stable   bool // the name depends on labels only
	ownName  bool // the name is the message's own
	ownID    bool // the ID is the message's own
}

// resolution is the part of a decision that depends on the labels alone.
type resolution struct {
	rule int // negative if none matches
	name string
	err  error
}

// NewTable checks the rules. Its error joins all mistakes, each a [*RuleError], as [errors.Join]
// does.
func NewTable(rules []Rule) (*Table, error) {
	if len(rules) > maxRules {
		return nil, errors.Join(&RuleError{Rule: maxRules, Err: fmt.Errorf("there are %d rules, more than %d", len(rules), maxRules)})
	}
	t := &Table{rules: make([]rule, len(rules))}
	var errs []error
	for i := range rules {
		report := func(field string, err error) { errs = append(errs, &RuleError{Rule: i, Field: field, Err: err}) }
		t.rules[i] = newRule(rules[i], report)
		for j := range i {
			if rules[j].Match.covers(&rules[i].Match) {
				report("", fmt.Errorf("never reached: rule %d, before it, matches all that it matches", j))
				break
			}
		}
		d, _ := t.rules[i].name.dimensions()
		t.dimensions = t.dimensions.or(rules[i].Match.dimensions()).or(d)
		if t.rules[i].ownName {
			t.dimensions = t.dimensions.or(dimensions{kind: true, topic: true})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

func newRule(r Rule, report func(field string, err error)) rule {
	compiled := rule{Rule: r, ownName: r.Name == "" && !r.Drop, ownID: r.ID == "" || r.ID == "{id}"}
	r.Match.check(report)
	if r.Drop {
		for _, f := range []struct{ field, value string }{{"destination", r.Destination}, {"name", r.Name}, {"id", r.ID}} {
			if f.value != "" {
				report(f.field, fmt.Errorf("%s is %q, but drop says that the messages are not sent", f.field, f.value))
			}
		}
		return compiled
	}
	if r.Destination == "" {
		report("destination", errors.New("there is none: want the name of a destination, or drop"))
	}
	var err error
	if r.Name != "" {
		if compiled.name, err = parseTemplate(r.Name); err != nil {
			report("name", err)
		}
		_, compiled.stable = compiled.name.dimensions()
	}
	if !compiled.ownID {
		if compiled.id, err = parseTemplate(r.ID); err != nil {
			report("id", err)
		} else if !compiled.id.uses("id") {
			report("id", fmt.Errorf("%q does not contain {id}: all messages would have the same ID", r.ID))
		}
	}
	return compiled
}

// Resolve finds the first rule that matches m and returns its decision. An error means that the
// message is refused. It is [postrider.Permanent]: no rule matches ([ErrNoRoute]), or the message
// lacks a value that a template requires.
func (t *Table) Resolve(m *postrider.Message) (Decision, error) {
	l := t.dimensions.of(m)
	v := t.resolutions.get(l, t.resolve)
	if v.rule < 0 {
		return Decision{}, postrider.Permanent(fmt.Errorf("%w a message of type %q, topic %q, tenant %q", ErrNoRoute, m.Type, m.Topic, m.TenantID))
	}
	r := &t.rules[v.rule]
	d := Decision{Rule: v.rule, Destination: r.Destination, Name: v.name, ID: m.WireID, Drop: r.Drop}
	if r.Drop {
		return d, nil
	}
	err := v.err
	if err == nil && !r.ownName && !r.stable {
		d.Name, err = r.name.render(m, false)
	}
	if err != nil {
		return Decision{}, r.refuse(v.rule, "name", err)
	}
	if !r.ownID {
		if d.ID, err = r.id.render(m, true); err != nil {
			return Decision{}, r.refuse(v.rule, "id", err)
		}
	}
	return d, nil
}

func (r *rule) refuse(index int, field string, err error) error {
	text := r.Name
	if field == "id" {
		text = r.ID
	}
	if text == "" {
		text = "{topic} or {type}"
	}
	return postrider.Permanent(fmt.Errorf("route: rule %d: %s %q: %w", index, field, text, err))
}

// resolve finds the first rule that matches, and the name if it depends on labels only.
func (t *Table) resolve(l labels) resolution {
	at := slices.IndexFunc(t.rules, func(r rule) bool { return r.Match.matches(l) })
	v := resolution{rule: at}
	if at < 0 {
		return v
	}
	m := postrider.Message{Type: l.kind, Topic: l.topic, TenantID: l.tenant}
	switch r := &t.rules[at]; {
	case r.Drop:
	case r.ownName:
		v.name = m.Topic
		if v.err = checkValue("topic", m.Topic); m.Topic == "" {
			v.err = checkValue("type", m.Type)
		}
	case r.stable:
		v.name, v.err = r.name.render(&m, false)
	}
	return v
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }
