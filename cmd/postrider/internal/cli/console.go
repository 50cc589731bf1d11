package cli

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
)

// defaultConsole is the default address of the console.
const defaultConsole = "127.0.0.1:8711"

func (a *app) consoleCommand() *cobra.Command {
	var file, listen string
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the web console",
		Long: "Serves the web console until stopped: for the databases of a configuration file or, with --dsn or without a file,\n" +
			"for one database. Relays may run elsewhere. A relay can also serve the console itself, and then shows more: how\n" +
			"long messages take, and what the relay is doing. The section console of the file configures authentication. Without it\n" +
			"the console only accepts requests from this machine, and gives everybody there all rights.",
		Example: "  postrider console\n" +
			"  postrider console --config postrider.yaml --listen 127.0.0.1:9000\n" +
			"  postrider relay --to nats://localhost --console 127.0.0.1:8711",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			path, err := a.doctorFile(cmd, file)
			if err != nil {
				return err
			}
			c, databases := config.Console{}, []logDatabase{a.flagDatabase()}
			if path != "" {
				f, err := a.useConfig(path, false)
				if err != nil {
					return err
				}
				c = f.Console
				if databases, err = fileDatabases(f); err != nil {
					return err
				}
			}
			c.Listen = cmp.Or(listen, c.Listen, defaultConsole)
			return a.serveConsole(cmd.Context(), c, databases)
		},
	}
	addConfig(cmd, &file)
	cmd.Flags().StringVar(&listen, "listen", "", "host and port; default: console.listen of the file, or "+defaultConsole)
	return cmd
}

// serveConsole serves the console until ctx ends.
func (a *app) serveConsole(ctx context.Context, c config.Console, databases []logDatabase) error {
	log := slog.New(slog.NewTextHandler(a.err, nil))
	opened, err := a.openConsole(ctx, c, databases, nil, nil, log)
	if err != nil {
		return err
	}
	defer opened.close()
	stop, err := opened.listener(c).start(ctx, log)
	if err != nil {
		return err
	}
	defer stop()
	a.say("the console is at " + consoleURL(c) + "\n")
	opened.Run(ctx)
	return nil
}

func (c *openConsole) listener(cfg config.Console) httpListener {
	l := httpListener{what: "console", listen: cfg.Listen, Handler: c}
	if cfg.CertFile != "" {
		l.certificate = &certificate{certFile: cfg.CertFile, keyFile: cfg.KeyFile}
	}
	return l
}

// consoleURL returns the URL of the console for a browser.
func consoleURL(c config.Console) string {
	host, port, _ := net.SplitHostPort(c.Listen) // was validated
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme := "http://"
	if c.CertFile != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port) + "/" + strings.TrimLeft(c.Prefix, "/")
}
