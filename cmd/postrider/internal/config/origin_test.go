package config_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/store/feeds"
)

func TestParseOrigin(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]feeds.Origin{"now": {Now: true}, "oldest": {}, "2026-01-31T12:00:00Z": {Time: noon}} {
		if got, err := config.ParseOrigin(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "yesterday", "2h", "0001-01-01T00:00:00Z"} {
		if _, err := config.ParseOrigin(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestWhere(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"stdout:": "stdout:", "discard:": "discard:", "nats": "nats",
		"nats://user:pass@a:4222,b:4222/x?token=y": "nats://a:4222,b:4222",
		"amqp://guest:p@ss@host:5672/vhost":        "amqp://host:5672",
		"https://hooks.example/services/SECRET":    "https://hooks.example",
	} {
		if got := config.Where(url); got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}
