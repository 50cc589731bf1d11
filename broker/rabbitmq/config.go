package rabbitmq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/wire"
)

// Config tells a [Publisher] or a [Consumer] where the server is and what to do there.
type Config struct {
	// URL is the server's address, such as amqp://user:password@host:5672/vhost, or amqps:// for TLS. Required.
	URL string
	// Exchange is where messages are published. Defaults to the default one: names are those of queues.
	Exchange string `option:"exchange" doc:"Exchange to publish to; default: a message's name is that of a queue."`
	// Pipeline lets a relay have several messages of one key under way, for few keys with many messages. Their order can
	// then break when a queue rejects a message, or a binding changes, between two of them. Defaults to false.
	Pipeline bool `option:"pipeline" default:"false" doc:"Several messages of one key under way at a time."`
	// MaxBytes is the largest body that is sent, at most the server's max_message_size. Defaults to 16 MiB.
	MaxBytes int `option:"max_bytes" default:"16777216" doc:"Largest body that is sent."`
	// QueueType is that of a queue that the driver creates. Defaults to classic.
	QueueType string `option:"queue_type" default:"classic" values:"classic,quorum" doc:"Type of a created queue."`
	// Format is how a message is laid out. Defaults to [wire.CloudEvents].
	Format wire.Format `option:"format"`
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

	unread error // what could not be read of the settings
}

// complete returns the configuration with its defaults, or all that is wrong with it. It does not repeat the URL, which
// may hold a password.
func (c Config) complete() (Config, *wire.Codec, error) {
	broker.SetDefaults(&c)
	if c.Dial == nil {
		c.Dial = (&net.Dialer{}).DialContext
	}
	codec, err := wire.NewCodec(c.Format, c.Source, wire.Dialect{Prefix: "cloudEvents_", ByType: c.Exchange != ""})
	errs := append(broker.Negative(c), c.unread, err, checkShort("Exchange", c.Exchange), checkShort("Name", c.Name))
	u, err := amqp.ParseURI(c.URL)
	switch {
	case err != nil:
		errs = append(errs, errors.New("URL is not one such as amqp://user:password@localhost:5672/vhost"))
	case c.TLS != nil && u.Scheme != "amqps":
		errs = append(errs, fmt.Errorf("TLS is set, but URL says %s, which is not encrypted: want amqps", u.Scheme))
	case c.TLS != nil && c.TLS.InsecureSkipVerify:
		errs = append(errs, errors.New("TLS has InsecureSkipVerify: servers are always verified"))
	}
	if c.InFlight+c.MaxWaiting > 65535 {
		errs = append(errs, fmt.Errorf("InFlight is %d and MaxWaiting %d: together they are the prefetch, which is at most 65535", c.InFlight, c.MaxWaiting))
	}
	if err = errors.Join(errs...); err != nil {
		err = fmt.Errorf("rabbitmq: %w", err)
	}
	return c, codec, err
}

// checkShort holds what the protocol says of names: at most 255 bytes.
func checkShort(what, value string) error {
	if len(value) > 255 {
		return fmt.Errorf("%s has %d bytes: AMQP carries at most 255", what, len(value))
	}
	return nil
}
