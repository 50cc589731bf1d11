package bench

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func TestSumMetrics(t *testing.T) {
	sums := sumMetrics(`# HELP a_total Something.
a_total{call="read",feed="x"} 3
a_total{call="read",feed="y"} 4
a_total{call="settle",feed="x y"} 1e+1
go_goroutines 31
broken
`)
	for name, want := range map[string]float64{"a_total": 17, "a_total read": 7, "a_total settle": 10, "go_goroutines": 31} {
		if sums[name] != want {
			t.Errorf("%s is %g, want %g", name, sums[name], want)
		}
	}
}

// TestAddressOf: an address keeps what it says, but for the database and the name of the connections.
func TestAddressOf(t *testing.T) {
	t.Setenv("PGPASSWORD", "")
	for _, text := range []string{
		"postgres://ann:s%20c@127.0.0.1:5433/app?sslmode=disable&options=-c%20jit%3Doff",
		`host=127.0.0.1 port=5433 user=ann password='s c' dbname=app sslmode=disable options='-c jit=off'`,
	} {
		config, err := pgxpool.ParseConfig(text)
		if err != nil {
			t.Fatal(err)
		}
		config.ConnConfig.Database = "it's another"
		address, err := addressOf(config, "the relays")
		if err != nil {
			t.Fatal(err)
		}
		got, err := pgxpool.ParseConfig(address)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		c := got.ConnConfig
		if c.Database != "it's another" || c.RuntimeParams["application_name"] != "the relays" || c.Password != "s c" || c.Port != 5433 ||
			c.User != "ann" || c.RuntimeParams["options"] != "-c jit=off" {
			t.Errorf("%s means %s, %s, %v", address, c.Database, c.User, c.RuntimeParams)
		}
	}
}

// TestSecretsStayOut: the file of the relays names the variables, not what is in them.
func TestSecretsStayOut(t *testing.T) {
	config, err := pgxpool.ParseConfig("postgres://ann:hidden-secret@127.0.0.1:5433/app?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	a := assignment{
		relays: 1, labs: []*Lab{{config: config, schema: "s"}}, feeds: []string{"f"},
		to: destination{url: "nats://bob:hidden-secret@h", name: "n", options: map[string]string{"format": "raw"}}, connections: 3,
	}
	text, secrets, err := a.file()
	if err != nil || strings.Contains(string(text), "hidden-secret") || len(secrets) != 2 {
		t.Errorf("%s, %d variables, %v", text, len(secrets), err)
	}
}
