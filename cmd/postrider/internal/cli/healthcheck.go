package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// healthcheck holds the flags of "postrider healthcheck".
type healthcheck struct {
	file, listen string
	live         bool
	timeout      time.Duration
}

func (a *app) healthcheckCommand() *cobra.Command {
	var o healthcheck
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the local relay whether it is ready",
		Long: "Calls /readyz of the relay that runs with the same file, with the address and the token of the file. It is meant as the\n" +
			"health check of containers, which contain no other HTTP client. Exit code 0 means ready, 1 not ready.",
		Example: "  postrider healthcheck\n" +
			"  postrider healthcheck --live\n" +
			"  postrider healthcheck --health 127.0.0.1:8710",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.askHealth(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.file, "config", "", "file of the relay; default: $POSTRIDER_CONFIG, ./"+defaultConfig)
	flags.StringVar(&o.listen, "health", "", "host and port to call; default: health.listen of the file")
	flags.BoolVar(&o.live, "live", false, "call /livez instead, which also succeeds while a broker or a database is down")
	flags.DurationVar(&o.timeout, "timeout", 5*time.Second, "how long to wait for the answer")
	return cmd
}

func (a *app) askHealth(ctx context.Context, o healthcheck) error {
	at := config.Health{Listen: o.listen}
	if path, said := configPath(o.file); said || o.listen == "" {
		f, err := a.useConfig(path, false)
		if err != nil {
			return err
		}
		at = config.Health{Listen: cmp.Or(o.listen, f.Health.Listen), Token: f.Health.Token}
	}
	if at.Listen == "" {
		return usagef("no address: the file has no health.listen, and --health is not set")
	}
	page := "/readyz?verbose"
	if o.live {
		page = "/livez"
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	good, text, err := askPage(ctx, at, page)
	if err != nil {
		return fmt.Errorf("the relay does not answer: %v", err) //nolint:errorlint // exit code 6 is for an unreachable database only
	}
	if !good {
		return fmt.Errorf("%s returned:\n%s", page, text)
	}
	_, err = fmt.Fprintln(a.out, "ok")
	return err
}

// askPage calls the page, reports whether its status is 200, and returns its text.
func askPage(ctx context.Context, at config.Health, page string) (good bool, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+callable(at.Listen)+page, nil)
	if err != nil {
		return false, "", err
	}
	if at.Token != "" {
		req.Header.Set("Authorization", "Bearer "+at.Token)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // ignore proxies of the environment
	answer, err := direct.Do(req)
	if err != nil {
		return false, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer.StatusCode == http.StatusOK, strings.TrimSpace(string(body)), err
}

// callable converts an address to listen on into one to connect to. An unspecified address becomes
// loopback.
func callable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch host { // never "localhost": an empty container image has no hosts file
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
