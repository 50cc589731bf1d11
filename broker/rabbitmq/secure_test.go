package rabbitmq_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/internal/need"
)

// TestLogins sends and receives with each login method, and checks the errors of failing ones.
func TestLogins(t *testing.T) {
	t.Parallel()
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_RABBITMQ_SECURE", "rabbitmq@secure")
	as := func(user string) string { return strings.Replace(address, "//", "//"+user+"@", 1) }
	certificate := func(name string) map[string]string {
		return ca.With("sasl", "external", "cert_file", ca.File(name+".pem"), "key_file", ca.File(name+".key"))
	}
	right := brokertest.SecretFile(t, "secret")
	brokertest.Logins(t, brokertest.Secured{
		Driver: "rabbitmq", Name: fmt.Sprintf("logins-%d", time.Now().UnixNano()),
		Logins: []brokertest.Login{
			brokertest.Works("password", as("postrider:secret"), ca.With()),
			brokertest.Works("password in a file", as("postrider"), ca.With("password_file", right)),
			brokertest.Works("certificate", address, certificate("client")),
			brokertest.Refused("wrong password", as("postrider:wrong"), ca.With(), "username or password not allowed"),
			brokertest.Refused("certificate of another authority", address, certificate("stranger"), "certificate"),
			brokertest.Refused("certificate that has expired", address, certificate("expired"), "certificate"),
			brokertest.Refused("other authority", as("postrider:secret"), ca.Only("other"), "certificate"),
			brokertest.Refused("system's authorities", as("postrider:secret"), nil, "certificate"),
		},
		Secret: brokertest.Login{URL: as("postrider"), Values: ca.With("password_file", right)}, SecretOption: "password_file",
	})
}

// TestSeveralHosts sends through a list of hosts of which only one exists.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	one := strings.Replace(address(t), server(t), "127.0.0.1:1,"+server(t)+",localhost:2", 1)
	p := publisher(t, func(c *rabbitmq.Config) { c.URL = one })
	for range 3 {
		if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a")}); errs != nil {
			t.Fatal(errs)
		}
	}
	if _, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: "amqp://u:canary@a,,b/"}); err == nil || strings.Contains(err.Error(), "canary") {
		t.Errorf("a list with a hole: %v", err)
	}
}

// TestClientSettings checks that client settings reach the server, and that those which would break
// a guarantee are refused.
func TestClientSettings(t *testing.T) {
	t.Parallel()
	name := newQueue(t, nil)
	p := publisher(t, func(c *rabbitmq.Config) {
		c.Client = amqp.Config{Properties: amqp.Table{"product": "shop"}, Heartbeat: 5 * time.Second}
	})
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "a")}); errs != nil {
		t.Fatal(errs)
	}
	for want, client := range map[string]amqp.Config{
		"use Dial and TLS": {Dial: amqp.DefaultDial(time.Second)}, "Recovery": {Recovery: new(amqp.Recovery)},
	} {
		if _, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: address(t), Client: client}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestSuiteOfCluster runs the suite on three servers that require TLS and a login, with quorum
// queues.
func TestSuiteOfCluster(t *testing.T) {
	need.Long(t, "the whole suite once more")
	need.Own(t, "rabbitmq-cluster")
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_RABBITMQ_CLUSTER", "rabbitmq-cluster")
	brokertest.RunSite(t, brokertest.Site{
		Driver: "rabbitmq", URL: strings.Replace(address, "//", "//postrider:secret@", 1),
		Values:    ca.With("queue_type", "quorum", "max_bytes", "1048576"),
		Abilities: brokertest.Abilities{MaxPayload: 1<<20 + 2, NoName: strings.Repeat("x", 256), NoPlace: true},
	})
}
