package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// refusedLogin is a destination that does not let us in, and what puts an end to that.
type refusedLogin struct {
	to   string
	set  map[string]string
	says string // in the status
	mend func()
	good *broker.Settings // with which what is needed there is made; nil if nothing is
}

// TestStatusOfARefusedLogin holds that a login which is refused is in the status within 5 s, in the broker's own words, that no message is
// blamed for it, and that everything goes on by itself when it is mended.
func TestStatusOfARefusedLogin(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(t *testing.T) refusedLogin{
		"wrong password": func(t *testing.T) refusedLogin {
			address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_REDIS_SECURE", "redis@secure")
			file := brokertest.SecretFile(t, "wrong")
			return refusedLogin{withUser(address, "postrider"), ca.With("password_file", file), "WRONGPASS", func() { write(t, file, "secret") }, nil}
		},
		"missing right": func(t *testing.T) refusedLogin {
			address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_REDIS_SECURE", "redis@secure")
			user := "login-" + postrider.NewID().String()
			admin := func(args ...string) {
				t.Helper()
				args = append([]string{"--cacert", ca.File("ca.pem"), "-u", withUser(address, "postrider:secret")}, args...)
				if out, err := exec.Command(need.Program(t, "redis-cli", "redis"), args...).CombinedOutput(); err != nil || !strings.Contains(string(out), "OK") {
					t.Fatalf("%v: %s", err, out)
				}
			}
			admin("ACL", "SETUSER", user, "on", ">secret", "~*", "+@all", "-xadd")
			return refusedLogin{withUser(address, user+":secret"), ca.With(), "NOPERM", func() { admin("ACL", "SETUSER", user, "+xadd") }, nil}
		},
		"expired certificate": func(t *testing.T) refusedLogin {
			address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_RABBITMQ_SECURE", "rabbitmq@secure")
			cert, key := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
			use := func(whose string) {
				write(t, key, read(t, ca.File(whose+".key")))
				write(t, cert, read(t, ca.File(whose+".pem")))
			}
			use("expired")
			set := ca.With("sasl", "external", "cert_file", cert, "key_file", key)
			good := &broker.Settings{URL: withUser(address, "postrider:secret"), Values: ca.With()}
			return refusedLogin{address, set, "certificate", func() { use("client") }, good}
		},
		"wrong SCRAM password": func(t *testing.T) refusedLogin {
			address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_KAFKA_SECURE", "kafka@secure")
			file := brokertest.SecretFile(t, "wrong")
			set := ca.With("sasl", "scram-sha-512", "password_file", file)
			good := &broker.Settings{URL: "kafkas://postrider:secret@" + address, Values: ca.With("sasl", "scram-sha-512")}
			return refusedLogin{"kafkas://postrider@" + address, set, "SASL", func() { write(t, file, "secret") }, good}
		},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			testRefusedLogin(t, open(t))
		})
	}
}

func testRefusedLogin(t *testing.T, l refusedLogin) {
	c := newCLI(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"))
	c.must("migrate", "up")
	topic := "login-" + postrider.NewID().String()
	if l.good != nil {
		d, err := broker.ForURL(l.to)
		if err == nil {
			err = d.Create(t.Context(), l.good, topic)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"relay", "--dsn", c.dsn, "--schema", c.schema, "--to", l.to}
	for option, value := range l.set {
		args = append(args, "--set", option+"="+value)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	var messages bytes.Buffer
	go func() {
		ended <- execute(ctx, streams{in: strings.NewReader(""), out: &bytes.Buffer{}, err: &messages}, args)
	}()
	defer func() {
		cancel()
		if code := <-ended; code != exitOK || strings.Contains(messages.String(), "secret") {
			t.Errorf("exit code %d\n%s", code, &messages)
		}
	}()
	c.exec(`SELECT @schema@.enqueue('test.happened', 'test', '1', '{}', topic => $1) FROM generate_series(1, 10)`, topic)
	began := time.Now()
	for !strings.Contains(c.problems(), l.says) {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("after 5 s the status does not say %q: %s", l.says, c.run("status").out)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("the status says so after %v", time.Since(began).Round(10*time.Millisecond))
	if dead := c.must("dead", "ls", "--json"); strings.Contains(dead, "test.happened") {
		t.Errorf("messages are dead: %s", dead)
	}
	l.mend()
	began = time.Now()
	for c.problems() != "" || c.undelivered() > 0 {
		if time.Since(began) > 30*time.Second {
			t.Fatalf("30 s after it was mended: %s", c.run("status").out)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("everything was delivered %v after it was mended", time.Since(began).Round(10*time.Millisecond))
}

// problems returns what the status says of the feeds.
func (c *cli) problems() (texts string) {
	c.t.Helper()
	var status struct {
		Feeds []struct{ Problems []struct{ Text string } }
	}
	if err := json.Unmarshal([]byte(c.run("status", "--json").out), &status); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range status.Feeds {
		for _, p := range f.Problems {
			texts += p.Text + "\n"
		}
	}
	return texts
}

// undelivered returns how many messages the feeds have before them.
func (c *cli) undelivered() (n int) {
	c.t.Helper()
	var feeds []struct{ Pending, Deferred int }
	if err := json.Unmarshal([]byte(c.must("feeds", "ls", "--json")), &feeds); err != nil {
		c.t.Fatal(err)
	}
	for _, f := range feeds {
		n += f.Pending + f.Deferred
	}
	return n
}

func withUser(address, user string) string { return strings.Replace(address, "//", "//"+user+"@", 1) }

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
