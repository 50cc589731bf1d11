package pulsar

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	apache "github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/token"
)

// Config configures a [Publisher] or a [Consumer]. Only URL is required, and Name and Group for a
// consumer.
type Config struct {
	// URL is the service URL: "pulsar://host:6650", or "pulsar+ssl://host:6651" for TLS.
	URL string
	// TLS replaces the settings of TLS connections. Defaults to the system's certificate
	// authorities.
	TLS *tls.Config
	// Logger receives outages. Defaults to [slog.Default].
	Logger *slog.Logger
	// Namespace is the namespace of topics that do not specify one. Defaults to "public/default".
	Namespace string `option:"namespace" default:"public/default" doc:"Where topics without tenant and namespace belong."`
	// Token is the JSON web token for authentication. Defaults to none.
	Token string `option:"token" kind:"secret" doc:"JSON web token to sign in with."`
	// TokenFile is a file that holds such a token. It is read for each connection. Defaults to
	// none.
	TokenFile string `option:"token_file" doc:"File with such a token, read for each connection."`
	// TokenURL is the token endpoint of an OAuth 2 provider, instead of a token. Requests use
	// ClientID, the secret in SecretFile, and Scope. Defaults to none.
	TokenURL   string `option:"token_url" doc:"Token endpoint of an OAuth 2 provider; instead of token_file."`
	ClientID   string `option:"client_id" doc:"Who we are to the provider."`
	SecretFile string `option:"client_secret_file" doc:"File with the client's secret, read each time a token is asked for."`
	Scope      string `option:"scope" doc:"What the token is to be good for."`
	// Client holds further options of the client, such as its Authentication. Options that other
	// fields set, and options that disable the verification of servers, are refused by name.
	// Defaults to none.
	Client apache.ClientOptions
	// OperationTimeout limits topic lookups and opening and closing topics. Defaults to 4 s.
	OperationTimeout time.Duration `option:"operation_timeout" default:"4s" doc:"How long to try to open or close a topic."`
	// Format is the message format. Defaults to [codec.CloudEvents].
	Format codec.Format `option:"format"`

	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`
	// AdminURL is the broker's HTTP address, such as "http://host:8080". [Publisher.Inspect] needs
	// it. Defaults to none.
	AdminURL string `option:"admin_url" doc:"The broker's HTTP address, to inspect topics."`
	// KeyBasedBatching puts only messages of one key into a batch, as consumers of the type
	// key_shared need. It is slow with many keys. Defaults to false.
	KeyBasedBatching bool `option:"key_based_batching" doc:"Batches of one key each, for consumers of the type key_shared."`
	// IdleTimeout is how long a topic stays open without messages. Defaults to 1 min.
	IdleTimeout time.Duration `option:"idle_timeout" default:"1m" doc:"After how long without a message a topic is closed."`

	// Name is the topic to receive from, including all its partitions.
	Name string `option:"name"`
	// Group is the subscription, whose consumers share the messages. A new subscription starts at
	// the topic's oldest message.
	Group string `option:"group"`
	// SubscriptionType is "failover", "exclusive", "key_shared" or "shared". Defaults to
	// "failover": one consumer at a time for each partition, which keeps order. With "shared" there
	// is no order.
	SubscriptionType string `option:"subscription_type" default:"failover" values:"failover,exclusive,key_shared,shared" doc:"How consumers of a group share messages; shared keeps no order."`
	// InFlight is how many messages are handled concurrently, and how many are prefetched. Defaults
	// to 64. MaxWaiting is how many may wait for their next attempt, or for another message of
	// their key. Defaults to 1000. After Attempts failures, by default 10, a message moves to the
	// topic DeadLetter, if it is set.
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`

	tokens *token.Source // nil without token files and provider
	said   *reasons
}

// prepare sets the defaults, reports all mistakes, and returns the codec.
func (c *Config) prepare(consumer bool) (*codec.Codec, error) {
	broker.SetDefaults(c)
	errs := broker.Negative(*c)
	complain := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New(text))
		}
	}
	scheme, hosts, _ := strings.Cut(c.URL, "://") // the URL may list several hosts, which package url cannot parse
	complain(scheme != "pulsar" && scheme != "pulsar+ssl" || hosts == "", "URL is not one such as pulsar://localhost:6650")
	complain(strings.Contains(hosts, "@"), "URL has a user or a password: Pulsar wants a token, see Token")
	complain(scheme == "pulsar" && c.TLS != nil, "TLS is set and URL begins with pulsar://: want pulsar+ssl://")
	complain(c.Token != "" && (c.TokenFile != "" || c.TokenURL != ""), "Token and TokenFile, or TokenURL, are set: want one of them")
	c.said = &reasons{}
	var err error
	c.tokens, err = c.tokenSource()
	errs = append(errs, err, c.checkClient())
	complain(strings.Count(c.Namespace, "/") != 1, `Namespace is not "tenant/namespace"`)
	admin, _, _ := strings.Cut(c.AdminURL, "://")
	complain(c.AdminURL != "" && admin != "http" && admin != "https", "AdminURL is not one such as http://localhost:8080")
	complain(admin == "http" && scheme == "pulsar+ssl", "URL has TLS and AdminURL has not")
	_, known := subscriptionTypes[c.SubscriptionType]
	complain(!known, "SubscriptionType is none of failover, exclusive, key_shared and shared")
	complain(consumer && c.Group == "", "Group is empty: name the subscription")
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{NoID: true})
	return coder, prefix(errors.Join(append(errs, err)...))
}

func prefix(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("pulsar: %w", err)
}

// open returns a client. The client does not connect and does not log: relevant failures are
// returned as errors.
func (c *Config) open() (apache.Client, error) {
	options := c.Client
	options.URL, options.TLSConfig = c.URL, c.TLS
	options.ConnectionTimeout, options.OperationTimeout, options.KeepAliveInterval = c.OperationTimeout, c.OperationTimeout, 10*time.Second
	if options.Logger == nil {
		options.Logger = log.NewLoggerWithSlog(slog.New(c.said))
	}
	if options.MetricsRegisterer == nil {
		options.MetricsRegisterer = prometheus.NewRegistry()
	}
	switch {
	case c.Token != "":
		options.Authentication = apache.NewAuthenticationToken(c.Token)
	case c.tokens != nil:
		options.Authentication = apache.NewAuthenticationTokenFromSupplier(func() (string, error) {
			ctx, cancel := context.WithTimeout(context.Background(), c.OperationTimeout)
			defer cancel()
			return c.tokens.Token(ctx)
		})
	}
	client, err := apache.NewClient(options)
	return client, prefix(err)
}
