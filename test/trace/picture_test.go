package trace_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pictures in docs/trace")

// pictures lists the brokers that figures are drawn for.
var pictures = []string{"nats", "rabbitmq", "kafka"}

// draw draws the order's trace, and writes the file with -update.
func draw(t *testing.T, b server, s *scene, spans []span) {
	t.Helper()
	if t.Failed() {
		return // a broker without traced calls
	}
	p := newPicture(s.shown(spans, s.traceOf("orders", secretOrder)))
	text := p.svg("One order through "+b.title, "from the request to the last effect, as an OTLP backend has received it")
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("the picture is not XML: %v", err)
		}
	}
	if *update && slices.Contains(pictures, b.driver) {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "trace", b.driver+".svg"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns the spans of a trace, and those of other traces that link to them, with readable
// topic names.
func (s *scene) shown(spans []span, trace string) []span {
	inside := make(map[string]bool)
	for _, x := range spans {
		if x.trace == trace {
			inside[x.id] = true
		}
	}
	plain := strings.NewReplacer(s.orders, "orders", s.charges, "charges")
	var all []span
	for _, x := range spans {
		if inside[x.id] || slices.ContainsFunc(x.links, func(id string) bool { return inside[id] }) {
			x.name = plain.Replace(x.name)
			all = append(all, x)
		}
	}
	return all
}
