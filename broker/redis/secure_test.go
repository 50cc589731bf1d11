package redis_test

import (
	"strings"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
)

// TestLogins sends and receives with each login method, and checks the errors of failing ones.
func TestLogins(t *testing.T) {
	t.Parallel()
	address, ca := brokertest.SecureEnv(t, "POSTRIDER_TEST_REDIS_SECURE", "redis@secure")
	as := func(user string) string { return strings.Replace(address, "//", "//"+user+"@", 1) }
	right := brokertest.SecretFile(t, "secret")
	brokertest.Logins(t, brokertest.Secured{
		Driver: "redis", Name: "logins-" + postrider.NewID().String(),
		Logins: []brokertest.Login{
			brokertest.Works("password", as("postrider:secret"), ca.With()),
			brokertest.Works("password in a file", as("postrider"), ca.With("password_file", right)),
			brokertest.Works("with a certificate", as("postrider:secret"), ca.With("cert_file", ca.File("client.pem"), "key_file", ca.File("client.key"))),
			brokertest.Refused("no login", address, ca.With(), "NOAUTH"),
			brokertest.Refused("wrong password", as("postrider:wrong"), ca.With(), "WRONGPASS"),
			brokertest.Refused("other authority", as("postrider:secret"), ca.Only("other"), "certificate"),
			brokertest.Refused("system's authorities", as("postrider:secret"), nil, "certificate"),
		},
		Secret: brokertest.Login{URL: as("postrider"), Values: ca.With("password_file", right)}, SecretOption: "password_file",
	})
}
