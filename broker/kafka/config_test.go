package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"

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

// TestRefusedOptions checks that client options which would break a guarantee are refused by name,
// and others are accepted.
func TestRefusedOptions(t *testing.T) {
	t.Parallel()
	for name, option := range map[string]kgo.Opt{
		"RequiredAcks":                        kgo.RequiredAcks(kgo.LeaderAck()),
		"DisableIdempotentWrite":              kgo.DisableIdempotentWrite(),
		"TransactionalID":                     kgo.TransactionalID("t"),
		"MaxProduceRequestsInflightPerBroker": kgo.MaxProduceRequestsInflightPerBroker(5),
		"ConsumerGroup":                       kgo.ConsumerGroup("g"),
		"ConsumeTopics":                       kgo.ConsumeTopics("t"),
		"Dialer":                              kgo.Dialer(func(context.Context, string, string) (net.Conn, error) { return nil, net.ErrClosed }),
		"DialTLSConfig":                       kgo.DialTLSConfig(new(tls.Config)),
	} {
		options := []kgo.Opt{option}
		switch name {
		case "RequiredAcks", "MaxProduceRequestsInflightPerBroker":
			options = append(options, kgo.DisableIdempotentWrite()) // the client itself requires both
		case "ConsumerGroup":
			options = append(options, kgo.ConsumeTopics("t"))
		}
		if _, err := NewPublisher(Config{URL: "kafka://localhost", Options: options}); err == nil || !strings.Contains(err.Error(), name+" cannot be set") {
			t.Errorf("%s: %v", name, err)
		}
	}
	p, err := NewPublisher(Config{URL: "kafka://localhost", Options: []kgo.Opt{
		kgo.ClientID("shop"), kgo.Rack("a"), kgo.SASL(plain.Auth{User: "u", Pass: "p"}.AsMechanism()), kgo.RequestTimeoutOverhead(time.Second),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s, err := p.take(t.Context(), broker.Sender{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if id := s.client.OptValue(kgo.ClientID); id != "shop" {
		t.Errorf("the client is called %v", id)
	}
}

func TestLoginMistakes(t *testing.T) {
	t.Parallel()
	for want, cfg := range map[string]Config{
		"neither token_file nor token_url":         {SASL: "oauthbearer"},
		"want oauthbearer":                         {TokenFile: "f"},
		"URL has no user":                          {PasswordFile: "f"},
		"URL has a user, but sasl is aws-msk-iam":  {URL: "kafka://u:p@localhost", SASL: "aws-msk-iam"},
		"password_file is set, and URL has a pass": {URL: "kafka://u:p@localhost", PasswordFile: "f"},
		"client_secret_file is not":                {SASL: "oauthbearer", TokenURL: "https://id/token", ClientID: "c"},
	} {
		cfg.URL = cmp.Or(cfg.URL, "kafka://localhost")
		if _, err := NewPublisher(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
