package stdout_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/stdout"
)

func event(payload any, opts ...postrider.Option) postrider.Message {
	return postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "7"}, payload, opts...)
}

func TestPayload(t *testing.T) {
	for name, test := range map[string]struct {
		message postrider.Message
		want    string
	}{
		"numbers keep their digits": {event(json.RawMessage(`{"n":1.10, "big":12345678901234567890}`)),
			`"payload":{"n":1.10, "big":12345678901234567890}}`},
		"nothing is escaped": {event(json.RawMessage(`"<&>"`)), `"payload":"<&>"}`},
		"one line":           {event(json.RawMessage("{\n  \"a\": 1.0\r\n}")), `"payload":{"a":1.0}}`},
		"bytes":              {event([]byte{0, 1, 2}), `"payloadBase64":"AAEC"}`},
		"not JSON":           {event(json.RawMessage(`{`)), `"payloadBase64":"ew=="}`},
		"with parameter": {event(json.RawMessage(`1`), func(m *postrider.Message) {
			m.ContentType = "application/json; charset=utf-8"
		}), `"payload":1}`},
		"structured suffix": {event(json.RawMessage(`1`), func(m *postrider.Message) {
			m.ContentType = "application/cloudevents+json"
		}), `"payload":1}`},
		"a time that JSON has no form for": {event(json.RawMessage(`1`), func(m *postrider.Message) {
			m.OccurredAt = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
		}), `"payload":1}`},
		"no content type": {event(json.RawMessage(`1`), func(m *postrider.Message) { m.ContentType = "" }),
			`"payloadBase64":"MQ=="}`},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if errs := stdout.New(&out).Publish(t.Context(), []postrider.Message{test.message}); errs != nil {
				t.Fatal(errs)
			}
			line, ok := strings.CutSuffix(out.String(), "\n")
			if !ok || !strings.HasSuffix(line, test.want) || strings.ContainsAny(line, "\n\r") || !json.Valid([]byte(line)) {
				t.Errorf("got %q, want a line of JSON that ends with %s", out.String(), test.want)
			}
		})
	}
}

// TestTornLine makes the writer fail within the second of three lines.
func TestTornLine(t *testing.T) {
	msgs := []postrider.Message{event("a"), event("b"), event("c")}
	w := &limited{}
	p := stdout.New(w)
	w.limit = 1 << 20
	p.Publish(t.Context(), msgs[:1])
	line := w.out.Len()
	w.out.Reset()

	w.limit = line + 10
	errs := p.Publish(t.Context(), msgs)
	if len(errs) != 3 || errs[0] != nil || postrider.ClassOf(errs[1]) != postrider.ClassUnavailable ||
		postrider.ClassOf(errs[2]) != postrider.ClassUnavailable || !errors.Is(errs[2], errFull) {
		t.Fatalf("errors %v, want nil and two outages", errs)
	}
	w.limit = 1 << 20
	if errs := p.Publish(t.Context(), msgs[1:]); errs != nil {
		t.Fatal(errs)
	}
	lines := strings.Split(strings.TrimSuffix(w.out.String(), "\n"), "\n")
	if len(lines) != 4 || !json.Valid([]byte(lines[0])) || !json.Valid([]byte(lines[2])) || !json.Valid([]byte(lines[3])) {
		t.Errorf("got %q, want a whole line, a torn one, and two whole ones", lines)
	}
}

func TestFlushesBeforeItConfirms(t *testing.T) {
	w := &limited{}
	p := stdout.New(bufio.NewWriter(w))
	errs := p.Publish(t.Context(), []postrider.Message{event("a")})
	if len(errs) != 1 || postrider.ClassOf(errs[0]) != postrider.ClassUnavailable {
		t.Errorf("errors %v, want an outage", errs)
	}
}

func TestEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	errs := stdout.New(&out).Publish(ctx, []postrider.Message{event("a")})
	if len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || out.Len() != 0 {
		t.Errorf("errors %v and %d bytes, want a cancelled context and nothing", errs, out.Len())
	}
}

func Example() {
	id, _ := postrider.ParseID("01890a5d-ac96-774b-bcce-b302099a8057")
	p := stdout.New(os.Stdout)
	p.Publish(context.Background(), []postrider.Message{{
		ID:          id,
		Type:        "order.placed",
		Key:         "order/7",
		ContentType: "application/json",
		Payload:     []byte(`{"total":12.50}`),
	}})
	// Output: {"id":"01890a5d-ac96-774b-bcce-b302099a8057","type":"order.placed","key":"order/7","contentType":"application/json","payload":{"total":12.50}}
}

var errFull = errors.New("no space left")

// limited accepts limit bytes.
type limited struct {
	limit int
	out   bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.limit)
	l.limit -= n
	l.out.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}
