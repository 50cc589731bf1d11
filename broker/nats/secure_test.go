package nats_test

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/nats"
	"github.com/postrider/postrider/internal/need"
)

// seed is that of the user whose public key the server knows (dev/lib/nats.sh). It opens nothing but a server for tests on this machine.
const seed = "SUAOVMOAVX6ZIGTRZRQXHLPRI47JLR57Z7GQ5YPPDCK3DA2V5ENLKFU5DQ"

func secure(t *testing.T) (url, ca string) {
	t.Helper()
	return need.Env(t, "POSTRIDER_TEST_NATS_SECURE", "nats@secure"), need.Env(t, "POSTRIDER_TEST_CA", "nats@secure")
}

// TestLogins sends and receives with each way to log in, as configuration files have them, and names what is wrong with others.
func TestLogins(t *testing.T) {
	t.Parallel()
	url, ca := secure(t)
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	login := func(user string) string { return strings.Replace(url, "//", "//"+user+"@", 1) }
	trusted := map[string]string{"ca_file": filepath.Join(ca, "ca.pem")}
	d, err := broker.Lookup("nats")
	if err != nil {
		t.Fatal(err)
	}
	name := "logins." + strings.ReplaceAll(time.Now().Format("150405.000000"), ".", "")
	if err := d.Create(t.Context(), &broker.Settings{URL: login("postrider:secret"), Values: trusted}, name); err != nil {
		t.Fatal(err)
	}
	with := func(more ...string) map[string]string {
		values := map[string]string{"ca_file": trusted["ca_file"]}
		for i := 0; i < len(more); i += 2 {
			values[more[i]] = more[i+1]
		}
		return values
	}
	sent := 0
	for _, c := range []struct {
		what, url string
		values    map[string]string
		fails     string
	}{
		{"password", login("postrider:secret"), with(), ""},
		{"nkey", url, with("nkey_file", file("seed", seed+"\n")), ""},
		{"domain", login("postrider:secret"), with("domain", "secure"), ""},
		{"no login", url, with(), "Authorization Violation"},
		{"wrong password", login("postrider:wrong"), with(), "Authorization Violation"},
		{"broken nkey", url, with("nkey_file", file("other", strings.Replace(seed, "SUAOV", "SUAOW", 1))), "checksum"},
		{"other authority", login("postrider:secret"), map[string]string{"ca_file": filepath.Join(ca, "other.pem")}, "certificate"},
		{"no authority", login("postrider:secret"), nil, "certificate"},
	} {
		settings := &broker.Settings{URL: c.url, Values: c.values, Logger: slog.New(slog.DiscardHandler)}
		p, err := d.Open(settings)
		if err != nil {
			t.Errorf("%s: %v", c.what, err)
			continue
		}
		errs := p.Publish(t.Context(), []postrider.Message{event(name, "k", sent)})
		_ = p.Close()
		switch {
		case c.fails == "" && errs != nil:
			t.Errorf("%s: %v", c.what, errs)
		case c.fails == "":
			sent++
		case errs == nil:
			t.Errorf("%s was let in", c.what)
		case postrider.ScopeOf(errs[0]) != postrider.ScopeDestination || !strings.Contains(errs[0].Error(), c.fails):
			t.Errorf("%s: %v, want %q and the whole destination", c.what, errs[0], c.fails)
		}
	}
	settings := &broker.Settings{URL: login("postrider:secret"), Values: with("name", name, "group", "logins"), Logger: slog.New(slog.DiscardHandler)}
	c, err := d.Subscribe(settings)
	if err != nil {
		t.Fatal(err)
	}
	receive(t, c.(*nats.Consumer))
}

// TestOptions holds that a program's own options reach the client, and that those which would break a guarantee are refused by name.
func TestOptions(t *testing.T) {
	t.Parallel()
	url, ca := secure(t)
	authorities := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(ca, "ca.pem"))
	if err != nil || !authorities.AppendCertsFromPEM(pem) {
		t.Fatal("no authority", err)
	}
	p := publisher(t, nats.Config{URL: url, TLS: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}, Options: []client.Option{client.UserInfo("postrider", "secret")}})
	defer p.Close()
	conn, err := client.Connect(url, client.UserInfo("postrider", "secret"), client.RootCAs(filepath.Join(ca, "ca.pem")))
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
