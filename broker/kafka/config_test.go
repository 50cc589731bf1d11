package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/postrider/postrider/broker"
)

func TestURL(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		url, user, password string
		brokers             []string
		tls                 bool
	}{
		{"kafka://a:1", "", "", []string{"a:1"}, false},
		{"kafka://a:1,b:2,c", "", "", []string{"a:1", "b:2", "c:9092"}, false},
		{"kafkas://me:p%40ss,w:ord@a:1,b:2/", "me", "p@ss,w:ord", []string{"a:1", "b:2"}, true},
		{"kafka://[::1]:1,[::2]", "", "", []string{"[::1]:1", "[::2]:9092"}, false},
	} {
		cfg := Config{URL: c.url}
		if _, err := cfg.prepare(); err != nil {
			t.Errorf("%s: %v", c.url, err)
		}
		if !slices.Equal(cfg.brokers, c.brokers) || cfg.user != c.user || cfg.password != c.password || (cfg.TLS != nil) != c.tls {
			t.Errorf("%s: got %q, user %q, password %q, TLS %v", c.url, cfg.brokers, cfg.user, cfg.password, cfg.TLS != nil)
		}
	}
}

func TestBadURLs(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "kafka://", "kafka://a:1,,b:2", "kafka://a:1?tls=true", "kafka://a:1/topic", "kafka://%zz:x@a", "a:1"} {
		cfg := Config{URL: url}
		if _, err := cfg.prepare(); err == nil {
			t.Errorf("%q was accepted as %q", url, cfg.brokers)
		}
	}
}

func TestMistakesAreReportedAtOnce(t *testing.T) {
	t.Parallel()
	_, err := NewConsumer(Config{URL: "http://user:hunter2@x", Compression: "rar", MaxBytes: 5, SASL: "magic"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"URL", "rar", "max_bytes", "magic", "Name", "Group"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is in: %v", err)
	}
	driver, _ := broker.Lookup("kafka")
	_, err = driver.Open(&broker.Settings{URL: "kafka://x", Values: map[string]string{"ca_file": "config_test.go"}})
	if err == nil {
		t.Error("a file without certificates was accepted")
	}
}
