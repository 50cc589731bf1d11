package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

// Config configures a [Publisher] or a [Consumer].
type Config struct {
	// URL is the server's address, such as amqp://user:password@host:5672/vhost, or amqps:// for
	// TLS. It may list several hosts of a cluster, separated by commas: each connection goes to one
	// of them that answers. Required.
	URL string
	// SASL is the login method; external uses the client's certificate.
	SASL string `option:"sasl" default:"plain" values:"plain,external" doc:"How a user logs in; with external it is by the client's certificate."`
	// PasswordFile holds the user's password and is read for each connection. Defaults to none: the
	// password is in URL.
	PasswordFile string `option:"password_file" doc:"File with the user's password, read for each connection."`
	// Exchange is the exchange to publish to. Defaults to the default exchange, where names are
	// those of queues.
	Exchange string `option:"exchange" doc:"Exchange to publish to; default: a message's name is that of a queue."`
	// Pipeline lets a relay send several messages of one key at once, for workloads with few keys
	// and many messages. Order can then break if a queue rejects a message, or a binding changes,
	// between two of them. Defaults to false.
	Pipeline bool `option:"pipeline" default:"false" doc:"Several messages of one key under way at a time."`
	// MaxBytes is the largest body to send, at most the server's max_message_size. Defaults to 16
	// MiB.
	MaxBytes int `option:"max_bytes" default:"16777216" doc:"Largest body that is sent."`
	// QueueType is the type of queues that the driver creates. Defaults to classic.
	QueueType string `option:"queue_type" default:"classic" values:"classic,quorum,stream" doc:"Type of a created queue."`
	// Format is the message format. Defaults to [codec.CloudEvents].
	Format codec.Format `option:"format"`
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`
	// Name is the queue that a consumer receives from. Required for consumers.
	Name string `option:"name"`
	// InFlight is the maximum number of messages that a consumer handles concurrently. Defaults to
	// 64. MaxWaiting is the maximum number that wait for their next attempt, or for another message
	// of their key. Defaults to 1000. Their sum is the prefetch count. After Attempts failures, by
	// default 10, a message moves to the queue DeadLetter, if it is set.
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`
	// TLS is used with amqps. Defaults to the system's certificate authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and recoveries. Defaults to [slog.Default].
	Logger *slog.Logger
	// Client holds further options of the client. Its Dial, TLSClientConfig and Recovery are
	// refused: use the fields above instead of the first two. Defaults to none.
	Client amqp.Config

	unread    error    // error from reading the settings
	addresses []string // a URL for each host
}

// complete returns the configuration with its defaults, or all mistakes in it. Errors do not
// contain the URL, which may hold a password.
func (c Config) complete() (Config, *codec.Codec, error) {
	broker.SetDefaults(&c)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{Prefix: "cloudEvents_", ByType: c.Exchange != ""})
	errs := append(broker.Negative(c), c.unread, err, checkShort("Exchange", c.Exchange), checkShort("Name", c.Name))
	var scheme string
	if scheme, c.addresses, err = parseURL(c.URL); err != nil {
		errs = append(errs, err)
	} else {
		errs = append(errs, c.checkLogin(scheme))
	}
	if c.Client.Dial != nil || c.Client.TLSClientConfig != nil {
		errs = append(errs, errors.New("the client has Dial or TLSClientConfig: use Dial and TLS"))
	}
	if c.Client.Recovery != nil {
		errs = append(errs, errors.New("the client has Recovery: a channel that recovers by itself loses what was not confirmed"))
	}
	if c.InFlight+c.MaxWaiting > 65535 {
		errs = append(errs, fmt.Errorf("InFlight is %d and MaxWaiting %d: together they are the prefetch, which is at most 65535", c.InFlight, c.MaxWaiting))
	}
	if err = errors.Join(errs...); err != nil {
		err = fmt.Errorf("rabbitmq: %w", err)
	}
	return c, coder, err
}

// parseURL returns one URL per host, with the same credentials, path and query. Its error never
// contains the URL.
func parseURL(text string) (scheme string, addresses []string, err error) {
	scheme, _, _ = strings.Cut(text, "://")
	addresses = broker.SplitHosts(text)
	invalid := func(address string) bool { _, err := amqp.ParseURI(address); return err != nil }
	if len(addresses) == 0 || slices.ContainsFunc(addresses, invalid) {
		return "", nil, errors.New("URL is not one such as amqp://user:password@localhost:5672/vhost, or with several hosts: amqp://user:password@a:5672,b:5672/vhost")
	}
	return scheme, addresses, nil
}

// checkLogin reports contradictory settings.
func (c *Config) checkLogin(scheme string) error {
	var errs []error
	if c.TLS != nil && scheme != "amqps" {
		errs = append(errs, fmt.Errorf("TLS is set, but URL says %s, which is not encrypted: want amqps", scheme))
	}
	if c.TLS != nil && c.TLS.InsecureSkipVerify {
		errs = append(errs, errors.New("TLS has InsecureSkipVerify: servers are always verified"))
	}
	if c.SASL == "external" && !c.hasCertificate() {
		errs = append(errs, errors.New("sasl is external, but there is no client certificate: want cert_file and key_file, or TLS"))
	}
	if c.SASL != "external" && c.SASL != "plain" {
		errs = append(errs, fmt.Errorf("sasl is %q: want plain or external", c.SASL))
	}
	if c.PasswordFile != "" && c.SASL == "external" {
		errs = append(errs, errors.New("password_file is set, but sasl is external, which has no password"))
	}
	return errors.Join(errs...)
}

func (c *Config) hasCertificate() bool {
	return c.TLS != nil && (c.TLS.Certificates != nil || c.TLS.GetClientCertificate != nil)
}

// checkShort enforces the protocol's limit of 255 bytes for names.
func checkShort(what, value string) error {
	if len(value) > 255 {
		return fmt.Errorf("%s has %d bytes: AMQP carries at most 255", what, len(value))
	}
	return nil
}
