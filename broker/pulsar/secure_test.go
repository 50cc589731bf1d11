package pulsar

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"
	"testing"

	apache "github.com/apache/pulsar-client-go/pulsar"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/internal/need"
)

// TestLogins sends and receives with each login method, and checks the errors of failing ones.
func TestLogins(t *testing.T) {
	need.Long(t, "starts one more Pulsar")
	need.Own(t, "pulsar@secure")
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_PULSAR_SECURE", "pulsar@secure")
	file := need.Env(t, "POSTRIDER_TEST_PULSAR_SECURE_TOKEN", "pulsar@secure")
	token, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	right := strings.TrimSpace(string(token))
	brokertest.Logins(t, brokertest.Secured{
		Driver: "pulsar", Name: "logins-" + postrider.NewID().String(),
		Logins: []brokertest.Login{
			brokertest.Works("token", address, ca.With("token", right)),
			brokertest.Works("token in a file", address, ca.With("token_file", file)),
			brokertest.Refused("no login", address, ca.With(), "Failed to authenticate"),
			brokertest.Refused("wrong token", address, ca.With("token", right+"x"), "Failed to authenticate"),
			brokertest.Refused("other authority", address, ca.Only("other"), "certificate"),
			brokertest.Refused("system's authorities", address, map[string]string{"token": right}, "certificate"),
		},
		Secret: brokertest.Login{URL: address, Values: ca.With("token_file", file)}, SecretOption: "token_file",
	})
}

// TestSuiteWithLogin runs the suite on a server that requires TLS and a token.
func TestSuiteWithLogin(t *testing.T) {
	need.Long(t, "the whole suite once more")
	need.Own(t, "pulsar@secure")
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_PULSAR_SECURE", "pulsar@secure")
	brokertest.RunSite(t, brokertest.Site{
		Driver: "pulsar", URL: address, Values: ca.With("token_file", need.Env(t, "POSTRIDER_TEST_PULSAR_SECURE_TOKEN", "pulsar@secure")),
		NoDial: true, Abilities: abilities,
	})
}

// A login method that no option covers.
func ExampleConfig_client() {
	const url = "pulsar+ssl://pulsar.internal:6651"
	certificate := func() (*tls.Certificate, error) { return &tls.Certificate{}, nil } // for example from a vault
	p, err := NewPublisher(Config{URL: url, Client: apache.ClientOptions{Authentication: apache.NewAuthenticationFromTLSCertSupplier(certificate)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = NewPublisher(Config{URL: url, Client: apache.ClientOptions{TLSAllowInsecureConnection: true}})
	fmt.Println(err)
	// Output: pulsar: the client has TLSAllowInsecureConnection: servers are always verified
}
