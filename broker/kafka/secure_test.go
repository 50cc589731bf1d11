package kafka

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

// unsigned returns a token as the test server accepts it: for postrider, valid for an hour, and not
// signed.
func unsigned() string {
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Now().Unix()
	return encode([]byte(`{"alg":"none"}`)) + "." + encode(fmt.Appendf(nil, `{"sub":"postrider","iat":%d,"exp":%d}`, now-10, now+3600)) + "."
}

// TestLogins sends and receives with each login method, and checks the errors of failing ones.
func TestLogins(t *testing.T) {
	t.Parallel()
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_KAFKA_SECURE", "kafka@secure")
	right := brokertest.SecretFile(t, "secret")
	brokertest.Logins(t, brokertest.Secured{
		Driver: "kafka", Name: fmt.Sprintf("logins-%d", time.Now().UnixNano()),
		Logins: []brokertest.Login{
			brokertest.Works("password", "kafkas://postrider:secret@"+address, ca.With("sasl", "plain")),
			brokertest.Works("scram", "kafkas://postrider:secret@"+address, ca.With("sasl", "scram-sha-512")),
			brokertest.Works("scram with a file", "kafkas://postrider@"+address, ca.With("sasl", "scram-sha-512", "password_file", right)),
			brokertest.Works("token", "kafkas://"+address, ca.With("sasl", "oauthbearer", "token_file", brokertest.SecretFile(t, unsigned()))),
			brokertest.Refused("wrong password", "kafkas://postrider:wrong@"+address, ca.With("sasl", "scram-sha-512"), "SASL"),
			brokertest.Refused("no login", "kafkas://"+address, ca.With(), "is SASL missing?"),
			brokertest.Refused("wrong token", "kafkas://"+address, ca.With("sasl", "oauthbearer", "token_file", brokertest.SecretFile(t, "x")), "SASL"),
			brokertest.Refused("other authority", "kafkas://postrider:secret@"+address, ca.Only("other"), "certificate"),
			brokertest.Refused("system's authorities", "kafkas://postrider:secret@"+address, nil, "certificate"),
		},
		Secret: brokertest.Login{URL: "kafkas://postrider@" + address, Values: ca.With("sasl", "scram-sha-512", "password_file", right)}, SecretOption: "password_file",
	})
}

// TestSuiteOfCluster runs the suite on three brokers that require TLS and a login.
func TestSuiteOfCluster(t *testing.T) {
	need.Long(t, "the whole suite once more")
	need.Own(t, "kafka-cluster")
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_KAFKA_CLUSTER", "kafka-cluster")
	brokertest.RunSite(t, brokertest.Site{
		Driver: "kafka", URL: "kafkas://postrider:secret@" + address, Values: ca.With("sasl", "scram-sha-512", "partitions", "12"),
		Abilities: brokertest.Abilities{MaxPayload: 1_500_000, NoName: "no such/topic", SlowTakeover: true},
	})
}
