package brokertest

import (
	"os"
	"os/exec"
	"testing"
)

// Env returns the environment variable that says where a server is. Without it the test is skipped, or, in CI, fails.
func Env(t testing.TB, variable, service string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		message := variable + ` is not set; start the server: dev/services up ` + service + ` && eval "$(dev/services env)"`
		if os.Getenv("CI") == "true" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	return value
}

// Services runs the repository's dev/services, such as Services(t, "kill", "nats").
func Services(t testing.TB, args ...string) {
	t.Helper()
	script := Env(t, "POSTRIDER_SERVICES", args[len(args)-1])
	if out, err := exec.Command(script, args...).CombinedOutput(); err != nil {
		t.Fatalf("dev/services %v: %v\n%s", args, err, out)
	}
}
