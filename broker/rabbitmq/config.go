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

// Config tells a [Publisher] or a [Consumer] where the server is and what to do there.
type Config struct {
	// URL is the server's address, such as amqp://user:password@host:5672/vhost, or amqps:// for TLS. It may have several hosts of a
	// cluster, with commas in between: each connection goes to one of them that answers. Required.
	URL string
	// SASL is how a user logs in. With external that is by the client's certificate.
	SASL string `option:"sasl" default:"plain" values:"plain,external" doc:"How a user logs in; with external it is by the client's certificate."`
	// PasswordFile has the user's password, and is read for each connection. Defaults to none: the password is in URL.
	PasswordFile string `option:"password_file" doc:"File with the user's password, read for each connection."`
	// Exchange is where messages are published. Defaults to the default one: names are those of queues.
	Exchange string `option:"exchange" doc:"Exchange to publish to; default: a message's name is that of a queue."`
	// Pipeline lets a relay have several messages of one key under way, for few keys with many messages. Their order can
	// then break when a queue rejects a message, or a binding changes, between two of them. Defaults to false.
	Pipeline bool `option:"pipeline" default:"false" doc:"Several messages of one key under way at a time."`
	// MaxBytes is the largest body that is sent, at most the server's max_message_size. Defaults to 16 MiB.
	MaxBytes int `option:"max_bytes" default:"16777216" doc:"Largest body that is sent."`
	// QueueType is that of a queue that the driver creates. Defaults to classic.
	QueueType string `option:"queue_type" default:"classic" values:"classic,quorum,stream" doc:"Type of a created queue."`
	// Format is how a message is laid out. Defaults to [codec.CloudEvents].
	Format codec.Format `option:"format"`
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`
	// Name is the queue that a consumer receives from, which needs one.
	Name string `option:"name"`
	// InFlight is the largest number of messages that a consumer handles at a time. Defaults to 64. MaxWaiting is the largest
	// number that wait for their next attempt, or behind another one of their key. Defaults to 1000. Together they are the
	// prefetch. After Attempts failures, by default 10, a message goes to the queue DeadLetter, if there is one.
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`
	// TLS is used with amqps. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to that of [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger is told of outages and recoveries. Defaults to [slog.Default].
	Logger *slog.Logger
	// Client has further settings of the client. Dial and TLSClientConfig are those above, and Recovery is refused. Defaults to none.
	Client amqp.Config

	unread    error    // what could not be read of the settings
	addresses []string // a URL for each host
}

// complete returns the configuration with its defaults, or all that is wrong with it. It does not repeat the URL, which
// may hold a password.
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

// parseURL returns a URL for each host, with all that was said besides. Its error never contains the URL.
func parseURL(text string) (scheme string, addresses []string, err error) {
	scheme, _, _ = strings.Cut(text, "://")
	addresses = broker.SplitHosts(text)
	invalid := func(address string) bool { _, err := amqp.ParseURI(address); return err != nil }
	if len(addresses) == 0 || slices.ContainsFunc(addresses, invalid) {
		return "", nil, errors.New("URL is not one such as amqp://user:password@localhost:5672/vhost, or with several hosts: amqp://user:password@a:5672,b:5672/vhost")
	}
	return scheme, addresses, nil
}

// checkLogin reports settings that contradict each other.
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

// checkShort holds what the protocol says of names: at most 255 bytes.
func checkShort(what, value string) error {
	if len(value) > 255 {
		return fmt.Errorf("%s has %d bytes: AMQP carries at most 255", what, len(value))
	}
	return nil
}
