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

// healthcheck are the flags of "postrider healthcheck".
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
		Long: "Asks /readyz of the relay that serves the same file, with the address and the token that the file names. It is the\n" +
			"probe of containers, which have no other program that could ask. Exit code 0 means yes, 1 no.",
		Example: "  postrider healthcheck\n" +
			"  postrider healthcheck --live\n" +
			"  postrider healthcheck --health 127.0.0.1:8710",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.askHealth(cmd.Context(), o) },
	}
	flags := cmd.Flags()
	flags.StringVar(&o.file, "config", "", "file of the relay; default: $POSTRIDER_CONFIG, ./"+defaultConfig)
	flags.StringVar(&o.listen, "health", "", "host and port to ask; default: health.listen of the file")
	flags.BoolVar(&o.live, "live", false, "ask /livez instead: is it at work, also while a broker or a database is down?")
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
		return usagef("whom to ask? the file has no health.listen, and --health is not given")
	}
	page := "/readyz?verbose"
	if o.live {
		page = "/livez"
	}
	ctx, cancel := context.WithTimeout(ctx, o.timeout)
	defer cancel()
	good, text, err := askPage(ctx, at, page)
	if err != nil {
		return fmt.Errorf("nobody answers: %v", err) //nolint:errorlint // it is not the database that cannot be reached
	}
	if !good {
		return fmt.Errorf("%s says:\n%s", page, text)
	}
	_, err = fmt.Fprintln(a.out, "ok")
	return err
}

// askPage reports whether the answer is a good one, and its text.
func askPage(ctx context.Context, at config.Health, page string) (good bool, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+callable(at.Listen)+page, nil)
	if err != nil {
		return false, "", err
	}
	if at.Token != "" {
		req.Header.Set("Authorization", "Bearer "+at.Token)
	}
	direct := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // never through a proxy of the environment
	answer, err := direct.Do(req)
	if err != nil {
		return false, "", err
	}
	defer answer.Body.Close() //nolint:errcheck // was only read
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return answer.StatusCode == http.StatusOK, strings.TrimSpace(string(body)), err
}

// callable turns an address to listen on into one that can be called: every address of the machine includes loopback.
func callable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	switch host { // never "localhost": an empty container has no list of names
	case "", "0.0.0.0":
		host = "127.0.0.1"
	case "::":
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}
