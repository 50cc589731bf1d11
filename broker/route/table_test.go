package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider"
)

var testID = postrider.ID{0x01, 0x92, 15: 0x2a}

func message() postrider.Message {
	return postrider.Message{
		ID: testID, Type: "order.placed", Topic: "orders", TenantID: "acme", AggregateType: "order", AggregateID: "42",
		RoutingKey: "eu",
	}
}

func TestTemplates(t *testing.T) {
	id := testID.String()
	for _, c := range []struct {
		name, id         string
		change           func(*postrider.Message)
		wantName, wantID string
		refused          string
	}{
		{wantName: "orders"},
		{change: func(m *postrider.Message) { m.Topic = "" }, wantName: ""},
		{name: "{type}", wantName: "order.placed"},
		{name: "{topic}.{type}.{tenant}", wantName: "orders.order.placed.acme"},
		{name: "x-{aggregate_type}-{aggregate_id}-{key}-{routing_key}", wantName: "x-order-42-order/42-eu"},
		{name: "{key}", change: func(m *postrider.Message) { m.Key = "own" }, wantName: "own"},
		{name: "fixed", id: "outbox-{id}", wantName: "fixed", wantID: "outbox-" + id},
		{name: "fixed", id: "{id}", wantName: "fixed"},
		{name: "{id}", id: "verify_{id}_{tenant}", wantName: id, wantID: "verify_" + id + "_acme"},
		{id: "{tenant}/{id}", change: func(m *postrider.Message) { m.TenantID = "" }, wantName: "orders", wantID: "/" + id},

		{name: "{topic}", change: func(m *postrider.Message) { m.Topic = "" }, refused: `name "{topic}": the message has no {topic}`},
		{name: "a.{routing_key}.b", change: func(m *postrider.Message) { m.RoutingKey = "" }, refused: "has no {routing_key}"},
		{name: "{tenant}", change: func(m *postrider.Message) { m.TenantID = "a\nb" }, refused: "{tenant} contains a control character"},
		{id: "{key}{id}", change: func(m *postrider.Message) { m.Key = "\x7f" }, refused: "id \"{key}{id}\": the message's {key} contains"},
		{change: func(m *postrider.Message) { m.Topic = "a\tb" }, refused: "{topic} contains a control character"},
		{change: func(m *postrider.Message) { m.Topic, m.Type = "", "a\rb" }, refused: "{type} contains a control character"},
	} {
		t.Run(c.name+"|"+c.id, func(t *testing.T) {
			table, err := NewTable([]Rule{{Destination: "d", Name: c.name, ID: c.id}})
			if err != nil {
				t.Fatal(err)
			}
			m := message()
			if c.change != nil {
				c.change(&m)
			}
			for range 2 { // the second time from the cache
				d, err := table.Resolve(&m)
				if c.refused != "" {
					if postrider.ClassOf(err) != postrider.ClassPermanent || !strings.Contains(err.Error(), c.refused) {
						t.Errorf("error %v, want a permanent one with %q", err, c.refused)
					}
				} else if err != nil || d != (Decision{Destination: "d", Name: c.wantName, ID: c.wantID}) {
					t.Errorf("%+v, %v, want name %q and ID %q", d, err, c.wantName, c.wantID)
				}
			}
		})
	}
}

func TestFirstRuleWins(t *testing.T) {
	table, err := NewTable([]Rule{
		{Match: Match{Types: []string{"debug.*"}}, Drop: true},
		{Match: Match{Types: []string{"*.placed", "*.paid"}, Tenants: []string{"acme"}}, Destination: "a"},
		{Match: Match{Topics: []string{""}}, Destination: "b"},
		{Match: Match{Types: []string{"order.*"}}, Destination: "c"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind, topic, tenant string
		want                int
	}{
		{"debug.x", "", "", 0},
		{"debug.", "t", "acme", 0},
		{"order.placed", "t", "acme", 1},
		{"order.paid", "", "acme", 1},
		{"order.placed", "t", "Acme", 3},
		{"anything", "", "", 2},
		{"order.paid", "t", "", 3},
		{"debug", "t", "", -1},
		{"reorder.paid", "t", "", -1},
	} {
		d, err := table.Resolve(&postrider.Message{Type: c.kind, Topic: c.topic, TenantID: c.tenant})
		if c.want < 0 {
			if !errors.Is(err, ErrNoRoute) || postrider.ClassOf(err) != postrider.ClassPermanent || !strings.Contains(err.Error(), c.kind) {
				t.Errorf("%+v: %v, want a permanent ErrNoRoute with the type", c, err)
			}
		} else if err != nil || d.Rule != c.want {
			t.Errorf("%+v: rule %d, %v", c, d.Rule, err)
		}
	}
}

func TestMistakesInRules(t *testing.T) {
	_, err := NewTable([]Rule{
		{Match: Match{Types: []string{"a", ""}}, Destination: "d"},
		{Match: Match{Topics: []string{"b\n"}}, Destination: "d", Name: "{typ}.{x}", ID: "outbox"},
		{Match: Match{Tenants: []string{"t"}}, Destination: "d", Name: "{type", ID: "a}id}"},
		{Match: Match{Tenants: []string{"u"}}, Destination: "d", Name: "{{type}}", ID: "{"},
		{Match: Match{Types: []string{"c"}}, Drop: true, Name: "n", Destination: "d", ID: "{id}"},
		{Match: Match{Types: []string{"e*"}}, Name: " "},
		{Match: Match{Types: []string{"ef*g"}, Tenants: []string{"x"}}, Drop: true},
		{Destination: "d", Name: "a\x00"},
		{Match: Match{Types: []string{"z"}}, Destination: "d"},
	})
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		t.Fatalf("%T is not a list of errors", err)
	}
	var got []string
	for _, err := range joined.Unwrap() {
		var e *RuleError
		if !errors.As(err, &e) {
			t.Fatalf("%T: %v", err, err)
		}
		got = append(got, fmt.Sprintf("%d %s", e.Rule, e.Field))
	}
	want := []string{
		"0 types[1]", "1 topics[0]", "1 name", "1 id", "2 name", "2 id", "3 name", "3 id",
		"4 destination", "4 name", "4 id", "5 destination", "5 name", "6 ", "7 name", "8 ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("mistakes\n%q, want\n%q", got, want)
	}
	for _, text := range []string{
		"rule 1: name: there is no placeholder {typ}: want one of {type}, {topic}", "{x}", "does not contain {id}", "unbalanced braces",
		"drop says that the messages are not sent", "rule 8: never reached: rule 7",
	} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("nothing says %q in\n%v", text, err)
		}
	}
}

func TestNames(t *testing.T) {
	table, err := NewTable([]Rule{
		{Match: Match{Types: []string{"a", "b", "c*"}, Tenants: []string{"t", ""}}, Destination: "d", Name: "{tenant}.{type}"},
		{Match: Match{Types: []string{"x"}}, Destination: "d", Name: "fixed"},
		{Match: Match{Types: []string{"y"}}, Destination: "d", Name: "{type}.{key}"},
		{Match: Match{Types: []string{"z"}}, Destination: "e", Name: "elsewhere"},
		{Match: Match{Types: []string{"w"}}, Drop: true},
		{Destination: "d"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := table.Names("d"); !slices.Equal(got, []string{"fixed", "t.a", "t.b"}) {
		t.Errorf("names %q", got)
	}
	if got := table.Destinations(); !slices.Equal(got, []string{"d", "e"}) {
		t.Errorf("destinations %q", got)
	}
}

func TestMemoryIsBounded(t *testing.T) {
	table, err := NewTable([]Rule{{Match: Match{Types: []string{"even*"}}, Destination: "d"}, {Destination: "e", Name: "{tenant}"}})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * memoSize {
		m := postrider.Message{Type: fmt.Sprintf("odd%d", i), TenantID: fmt.Sprint(i)}
		if d, err := table.Resolve(&m); err != nil || d.Name != m.TenantID {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if n := len(table.resolutions.answers); n > memoSize {
		t.Errorf("%d answers are kept", n)
	}
}
