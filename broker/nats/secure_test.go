package nats_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// seed belongs to the user whose public key the server knows (dev/lib/nats.sh). It is valid only
// for test servers on this machine.
const seed = "SUAOVMOAVX6ZIGTRZRQXHLPRI47JLR57Z7GQ5YPPDCK3DA2V5ENLKFU5DQ"

// TestLogins sends and receives with each login method, and checks the errors of failing ones.
func TestLogins(t *testing.T) {
	t.Parallel()
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_NATS_SECURE", "nats@secure")
	as := func(user string) string { return strings.Replace(address, "//", "//"+user+"@", 1) }
	nkey := brokertest.SecretFile(t, seed)
	brokertest.Logins(t, brokertest.Secured{
		Driver: "nats", Name: fmt.Sprintf("logins.%d", time.Now().UnixNano()),
		Logins: []brokertest.Login{
			brokertest.Works("password", as("postrider:secret"), ca.With()),
			brokertest.Works("password of another address", "tls://postrider:secret@127.0.0.1:1,"+address, ca.With()),
			brokertest.Works("nkey", address, ca.With("nkey_file", nkey)),
			brokertest.Works("domain", as("postrider:secret"), ca.With("domain", "secure")),
			brokertest.Refused("no login", address, ca.With(), "Authorization Violation"),
			brokertest.Refused("wrong password", as("postrider:wrong"), ca.With(), "Authorization Violation"),
			brokertest.Refused("other authority", as("postrider:secret"), ca.Only("other"), "certificate"),
			brokertest.Refused("system's authorities", as("postrider:secret"), nil, "certificate"),
		},
		Secret: brokertest.Login{URL: address, Values: ca.With("nkey_file", nkey)}, SecretOption: "nkey_file",
	})
}

// TestOptions checks that a program's own options reach the client, and that options which would
// break a guarantee are refused by name.
func TestOptions(t *testing.T) {
	t.Parallel()
	url, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_NATS_SECURE", "nats@secure")
	authorities := x509.NewCertPool()
	pem, err := os.ReadFile(ca.File("ca.pem"))
	if err != nil || !authorities.AppendCertsFromPEM(pem) {
		t.Fatal("no authority", err)
	}
	p := publisher(t, nats.Config{URL: url, TLS: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, Options: []client.Option{client.UserInfo("postrider", "secret")}})
	defer p.Close()
	conn, err := client.Connect(url, client.UserInfo("postrider", "secret"), client.RootCAs(ca.File("ca.pem")))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	name := "options." + strings.ReplaceAll(time.Now().Format("150405.000000"), ".", "")
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: strings.ReplaceAll(name, ".", "_"), Subjects: []string{name}}); err != nil {
		t.Fatal(err)
	}
	if errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", 1)}); errs != nil {
		t.Error(errs)
	}
	for name, option := range map[string]client.Option{
		"MaxReconnects": client.MaxReconnects(7), "RetryOnFailedConnect": client.RetryOnFailedConnect(true),
		"ReconnectBufSize": client.ReconnectBufSize(1), "Secure": client.Secure(), "CustomInboxPrefix": client.CustomInboxPrefix("x"),
		"ErrorHandler": client.ErrorHandler(func(*client.Conn, *client.Subscription, error) {}),
	} {
		if _, err := nats.NewPublisher(nats.Config{URL: url, Options: []client.Option{option}}); err == nil || !strings.Contains(err.Error(), name+" cannot be set") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestSuiteOfCluster runs the suite on three servers that require TLS and a login.
func TestSuiteOfCluster(t *testing.T) {
	need.Long(t, "the whole suite once more")
	need.Own(t, "nats-cluster@secure")
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_NATS_CLUSTER_SECURE", "nats-cluster@secure")
	brokertest.RunSite(t, brokertest.Site{
		Driver: "nats", URL: strings.Replace(address, "//", "//postrider:secret@", 1), Values: ca.With("replicas", "3"),
		Member:    map[string]string{"ack_wait": "1s"},
		Abilities: brokertest.Abilities{NamesByType: true, MaxPayload: 3 << 19, NoName: "a..b", OneLineHeaders: true, Dedup: true},
	})
}
