package rabbitmq_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/rabbitmq"
)

// dangers returns the warnings as text.
func dangers(i broker.Inspection) string {
	var text []string
	for _, w := range i.Warnings {
		text = append(text, w.Danger+" -> "+w.Remedy)
	}
	return strings.Join(text, "\n")
}

func TestInspect(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	p := publisher(t, nil)
	got, err := p.Inspect(t.Context(), []string{name, "test-missing"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Danger, "test-missing takes no messages") {
		t.Errorf("got warnings %q", dangers(got))
	}
	unknown := slices.ContainsFunc(got.Settings, func(s broker.Setting) bool { return strings.HasPrefix(s.Value, "unknown: ") })
	if !unknown || !strings.HasPrefix(got.Settings[0].Value, "RabbitMQ ") || got.Confirmed == "" {
		t.Errorf("got %+v", got)
	}
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a")}); errs != nil {
		t.Errorf("after Inspect: %v", errs)
	}

	got, err = publisher(t, func(c *rabbitmq.Config) { c.Exchange = "test-missing" }).Inspect(t.Context(), []string{name})
	if err != nil || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Danger, "NOT_FOUND") {
		t.Errorf("missing exchange: got %v and %q", err, dangers(got))
	}

	away := publisher(t, func(c *rabbitmq.Config) { c.Dial = through("127.0.0.1:1") })
	if _, err := away.Inspect(t.Context(), []string{name}); err == nil {
		t.Error("a server that is not there was inspected")
	}
}
