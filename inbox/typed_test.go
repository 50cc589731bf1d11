package inbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

type order struct {
	Name  string `json:"name"`
	Cents int    `json:"cents"`
}

// upcasts convert version 1, in which a price was a number of euros, to 2 and then to 3.
var upcasts = []inbox.Option{
	inbox.Version(3),
	inbox.Upcast(1, func(payload []byte) ([]byte, error) {
		var v1 struct {
			Name  string `json:"name"`
			Euros int    `json:"euros"`
		}
		if err := json.Unmarshal(payload, &v1); err != nil {
			return nil, err
		}
		return json.Marshal(map[string]any{"title": v1.Name, "cents": v1.Euros * 100})
	}),
	inbox.Upcast(2, func(payload []byte) ([]byte, error) {
		return bytes.Replace(payload, []byte(`"title"`), []byte(`"name"`), 1), nil
	}),
}

func TestTyped(t *testing.T) {
	closed := []inbox.Option{inbox.RefuseUnknownFields()}
	for _, c := range []struct {
		name, payload string
		version       int
		options       []inbox.Option
		want          order
		fault         string
	}{
		{"plain", `{"name":"a","cents":5}`, 0, nil, order{"a", 5}, ""},
		{"any version", `{"name":"a"}`, 9, nil, order{"a", 0}, ""},
		{"unknown field", `{"name":"a","x":1}`, 0, nil, order{"a", 0}, ""},
		{"refused field", `{"name":"a","x":1}`, 0, closed, order{}, `unknown field "x"`},
		{"not JSON", `name=a`, 0, nil, order{}, "invalid JSON at byte"},
		{"another type", `[1]`, 0, nil, order{}, "a JSON array does not fit"},
		{"empty", ``, 0, nil, order{}, "the JSON ends too early"},
		{"more behind", `{"name":"a"} {}`, 0, nil, order{}, "something follows the JSON value"},
		{"garbage behind", `{"name":"a"}]`, 0, nil, order{}, "something follows the JSON value"},
		{"space behind", "{\"name\":\"a\"} \n", 0, nil, order{"a", 0}, ""},
		{"version 1", `{"name":"a","euros":5}`, 1, upcasts, order{"a", 500}, ""},
		{"no version", `{"name":"a","euros":5}`, 0, upcasts, order{"a", 500}, ""},
		{"version 2", `{"title":"a","cents":5}`, 2, upcasts, order{"a", 5}, ""},
		{"version 3", `{"name":"a","cents":5}`, 3, upcasts, order{"a", 5}, ""},
		{"version 4", `{"name":"a","cents":5}`, 4, upcasts, order{}, "schema version 4, this program knows 3"},
		{"no way", `{}`, 1, []inbox.Option{inbox.Version(2)}, order{}, "nothing leads from 1 to 2"},
		{"upcast fails", `[]`, 1, upcasts, order{}, "from schema version 1 to 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newFixture(t, inbox.Config{})
			var got order
			inbox.On(h.Inbox, "t", func(ctx context.Context, _ tx, o order) error { got = o; return nil }, c.options...)
			m := message("", c.payload)
			m.SchemaVersion = c.version
			h.receive(m)
			deadLetters := h.deadLetters()
			if c.fault == "" && (got != c.want || len(deadLetters) > 0) {
				t.Errorf("got %+v, want %+v; %+v", got, c.want, deadLetters)
			}
			if c.fault != "" && (len(deadLetters) != 1 || deadLetters[0].Status != feeds.StatusDead || !strings.Contains(deadLetters[0].LastError, c.fault)) {
				t.Errorf("want a dead letter with %q, got %+v", c.fault, deadLetters)
			}
		})
	}
}

// FuzzTyped checks that a payload is handled if and only if it is one JSON value that fits, and is
// a dead letter otherwise.
func FuzzTyped(f *testing.F) {
	for _, seed := range []string{`{"name":"a","cents":5}`, `{"name":"a"} x`, `{} {}`, `null`, `[`, `{"cents":1e99}`, "\xff", `{"Name":"a"}]`, ``} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		h := newFixture(t, inbox.Config{})
		called := 0
		inbox.On(h.Inbox, "t", func(context.Context, tx, order) error { called++; return nil })
		m := message("", "")
		m.Payload = payload
		h.receive(m)
		fits := 0
		d := json.NewDecoder(bytes.NewReader(payload))
		var o order
		if d.Decode(&o) == nil {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				fits = 1
			}
		}
		if called != fits || len(h.deadLetters()) != 1-fits {
			t.Errorf("%q: handled %d times, want %d; %+v", payload, called, fits, h.deadLetters())
		}
	})
}
