package nats

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker"
)

// checkLogin reports contradictory settings and missing files.
func (c *Config) checkLogin() error {
	var errs []error
	var set []string
	for _, file := range []struct{ name, path string }{
		{"credentials_file (CredentialsFile)", c.CredentialsFile}, {"nkey_file (NKeyFile)", c.NKeyFile}, {"token_file (TokenFile)", c.TokenFile},
	} {
		if file.path == "" {
			continue
		}
		set = append(set, file.name)
		if _, err := os.Stat(file.path); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file.name, err))
		}
	}
	if len(set) > 1 {
		errs = append(errs, fmt.Errorf("%s: want one of them", strings.Join(set, " and ")))
	}
	if c.Domain != "" && c.APIPrefix != "" {
		errs = append(errs, errors.New("domain (Domain) and api_prefix (APIPrefix): want one of them"))
	}
	return errors.Join(errs...)
}

// login returns the client options for the credentials in the files. It reads them for each
// connection, so that secrets can be rotated without a restart.
func (c *Config) login() ([]client.Option, error) {
	switch {
	case c.CredentialsFile != "":
		return []client.Option{client.UserCredentials(c.CredentialsFile)}, nil
	case c.NKeyFile != "":
		option, err := client.NkeyOptionFromSeed(c.NKeyFile)
		return []client.Option{option}, err
	case c.TokenFile != "":
		token, err := broker.ReadSecret("token_file", c.TokenFile)
		return []client.Option{client.Token(token)}, err
	}
	// Addresses without a login use that of the first address that has one.
	for address := range strings.SplitSeq(c.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(address)); err == nil && u.User != nil {
			password, ok := u.User.Password()
			if !ok {
				return []client.Option{client.Token(u.User.Username())}, nil
			}
			return []client.Option{client.UserInfo(u.User.Username(), password)}, nil
		}
	}
	return nil, nil
}

// jetStream returns the JetStream context for the configured domain or API prefix.
func (c *Config) jetStream(conn *client.Conn, opts ...jetstream.JetStreamOpt) (jetstream.JetStream, error) {
	switch {
	case c.Domain != "":
		return jetstream.NewWithDomain(conn, c.Domain, opts...)
	case c.APIPrefix != "":
		return jetstream.NewWithAPIPrefix(conn, c.APIPrefix, opts...)
	}
	return jetstream.New(conn, opts...)
}

// refuse reports, by name, options that would break a guarantee.
func refuse(options []client.Option) error {
	asked := client.GetDefaultOptions()
	var errs []error
	for _, option := range options {
		if option != nil {
			errs = append(errs, option(&asked))
		}
	}
	usual := client.GetDefaultOptions()
	for _, o := range []struct {
		name  string
		other bool
		why   string
	}{
		{"RetryOnFailedConnect", asked.RetryOnFailedConnect != usual.RetryOnFailedConnect, "a relay decides itself when to try again"},
		{"MaxReconnects", asked.MaxReconnect != usual.MaxReconnect, "a connection that comes back by itself sends again what was sent, behind what followed"},
		{"CustomReconnectDelay", asked.CustomReconnectDelayCB != nil, "a relay decides itself when to try again"},
		{"ReconnectBufSize", asked.ReconnectBufSize != usual.ReconnectBufSize, "what waits in such a buffer is neither sent nor refused"},
		{"SetCustomDialer", asked.CustomDialer != nil, "use Dial"},
		{"Secure", asked.TLSConfig != nil || asked.Secure, "use TLS"},
		{"CustomInboxPrefix", asked.InboxPrefix != usual.InboxPrefix, "use InboxPrefix"},
		{"ClosedHandler", asked.ClosedCB != nil, "the session must be notified of its end"},
		{"ErrorHandler", asked.AsyncErrorCB != nil, "the session must be notified of refusals"},
	} {
		if o.other {
			errs = append(errs, fmt.Errorf("option %s cannot be set: %s", o.name, o.why))
		}
	}
	return errors.Join(errs...)
}
