package brokertest

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/internal/need"
)

// Login is one set of connection settings for a server that requires TLS and a login.
type Login struct {
	Name   string
	URL    string
	Values map[string]string
	// Fails is a part of the expected error; empty means that the login succeeds.
	Fails string
}

// Secured is a server that requires TLS and a login.
type Secured struct {
	Driver string
	// Name is a topic, queue, subject or stream, which is created with the first of Logins.
	Name   string
	Logins []Login
	// Secret, if set, is a working login whose secret is in a file, named by the option
	// SecretOption.
	Secret       Login
	SecretOption string
}

// loginTime is how long a publisher may take to report a failed login.
const loginTime = 5 * time.Second

// Logins checks that each valid login can send and receive, that failed ones are reported soon and
// as a failure of the destination, and that a publisher uses a replaced secret immediately.
func Logins(t *testing.T, s Secured) {
	t.Helper()
	d, err := broker.Lookup(s.Driver)
	if err != nil {
		t.Fatal(err)
	}
	if d.Create != nil {
		if err := d.Create(t.Context(), s.settings(s.Logins[0], nil), s.Name); err != nil {
			t.Fatal(err)
		}
	}
	for _, l := range s.Logins {
		t.Run(strings.ReplaceAll(l.Name, " ", "_"), func(t *testing.T) {
			p := s.open(t, d, l)
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			errs := p.Publish(ctx, s.message())
			switch {
			case l.Fails == "" && errs != nil:
				t.Fatal(errs)
			case l.Fails == "":
				s.receive(t, d, l)
			case errs == nil:
				t.Error("it was let in")
			case postrider.ScopeOf(errs[0]) != postrider.ScopeDestination || !strings.Contains(errs[0].Error(), l.Fails):
				t.Errorf("got %v, of scope %v, want %q and the whole destination", errs[0], postrider.ScopeOf(errs[0]), l.Fails)
			case time.Since(began) > loginTime:
				t.Errorf("that was found out after %v", time.Since(began))
			}
		})
	}
	if s.SecretOption != "" {
		t.Run("replaced_secret", func(t *testing.T) { s.replace(t, d) })
	}
}

func (s *Secured) settings(l Login, more map[string]string) *broker.Settings {
	values := maps.Clone(l.Values)
	if values == nil {
		values = make(map[string]string)
	}
	maps.Copy(values, more)
	return &broker.Settings{URL: l.URL, Values: values, Logger: slog.New(slog.DiscardHandler)}
}

func (s *Secured) open(t *testing.T, d broker.Driver, l Login) postrider.Publisher {
	t.Helper()
	p, err := d.Open(s.settings(l, nil))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func (s *Secured) message() []postrider.Message {
	return []postrider.Message{message(s.Name, "k", 0)}
}

// receive waits for a message.
func (s *Secured) receive(t *testing.T, d broker.Driver, l Login) {
	t.Helper()
	c, err := d.Subscribe(s.settings(l, map[string]string{"name": s.Name, "group": "logins-" + postrider.NewID().String()}))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	came := false
	if err := c.Consume(ctx, func(context.Context, postrider.Message) error {
		came = true
		cancel()
		return nil
	}); err != nil || !came {
		t.Errorf("nothing was received: %v", err)
	}
}

// replace gives a publisher a wrong secret and then the right one.
func (s *Secured) replace(t *testing.T, d broker.Driver) {
	right, err := os.ReadFile(s.Secret.Values[s.SecretOption])
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	write := func(text []byte) {
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("wrong"))
	l := s.Secret
	l.Values = maps.Clone(l.Values)
	l.Values[s.SecretOption] = file
	p := s.open(t, d, l)
	if errs := p.Publish(t.Context(), s.message()); errs == nil || postrider.ScopeOf(errs[0]) != postrider.ScopeDestination {
		t.Errorf("with a wrong secret: %v, want an error about the destination", errs)
	}
	write(right)
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		errs := p.Publish(t.Context(), s.message())
		if errs == nil {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("with the right secret: %v", errs)
		}
	}
}

// Works returns a login that succeeds.
func Works(name, url string, values map[string]string) Login {
	return Login{Name: name, URL: url, Values: values}
}

// Refused returns a login that fails with the given text.
func Refused(name, url string, values map[string]string, fails string) Login {
	return Login{Name: name, URL: url, Values: values, Fails: fails}
}

// Authority is the folder of the certificate authority for tests; see dev/lib/ca.sh.
type Authority string

// SecureEnv returns the address of a secured server and its authority.
func SecureEnv(t *testing.T, variable, service string) (address string, ca Authority) {
	t.Helper()
	return need.Env(t, variable, service), Authority(need.Env(t, "POSTRIDER_TEST_CA", service))
}

// With returns settings that trust the authority, plus more: names and values in turn.
func (a Authority) With(more ...string) map[string]string {
	values := a.Only("ca")
	for i := 0; i < len(more); i += 2 {
		values[more[i]] = more[i+1]
	}
	return values
}

// Only returns settings that trust only the named authority.
func (a Authority) Only(name string) map[string]string {
	return map[string]string{"ca_file": a.File(name + ".pem")}
}

// File returns the path of a file in the folder.
func (a Authority) File(name string) string { return filepath.Join(string(a), name) }

// SecretFile writes a secret to a file and returns its path.
func SecretFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
