package kafka

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/token"
)

// Config configures a [Publisher] or a [Consumer]. Field tags hold the defaults.
type Config struct {
	// URL is kafka://host:port, or several hosts separated by commas; kafkas:// uses TLS. It may
	// hold credentials: kafka://user:password@host:port. Required.
	URL string
	// TLS is used for all connections if set. With kafkas://, it defaults to the system's
	// certificate authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives events that an operator should see. Defaults to [slog.Default].
	Logger *slog.Logger
	// Options are further options of the client, such as [kgo.SASL] with another mechanism.
	// Postrider's own options take precedence, and options that would break its guarantees are
	// refused. Defaults to none.
	Options []kgo.Opt

	SASL         string       `option:"sasl" default:"plain" values:"plain,scram-sha-256,scram-sha-512,oauthbearer,aws-msk-iam" doc:"How a user logs in; aws-msk-iam takes AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN of the environment."`
	PasswordFile string       `option:"password_file" doc:"File with the user's password, read for each login."`
	TokenFile    string       `option:"token_file" doc:"File with the token for oauthbearer, read for each login."`
	TokenURL     string       `option:"token_url" doc:"Token endpoint of an OAuth 2 provider, for oauthbearer; instead of token_file."`
	ClientID     string       `option:"client_id" doc:"Who we are to the provider."`
	SecretFile   string       `option:"client_secret_file" doc:"File with the client's secret, read each time a token is asked for."`
	Scope        string       `option:"scope" doc:"What the token is to be good for."`
	Format       codec.Format `option:"format"`
	Source       string       `option:"source"`

	// Publisher options.
	Compression string        `option:"compression" default:"none" values:"none,gzip,snappy,lz4,zstd" doc:"Of batches."`
	MaxBytes    int           `option:"max_bytes" default:"1048588" doc:"Largest batch, and so the largest message."`
	Timeout     time.Duration `option:"timeout" default:"30s" doc:"Longest time for one batch of messages."`
	Partitions  int           `option:"partitions" default:"12" doc:"Partitions of topics that Postrider creates."`
	// Once makes relays publish in transactions, one for each call, and ask the topics what has
	// arrived after a crash. Consumers must read committed messages only, as [Consumer] does. A
	// transaction takes 10 to 20 ms, however few messages it has.
	Once bool `option:"once" doc:"Publish in transactions, and ask what has arrived after a crash: no message comes twice to consumers that read committed ones."`

	// Consumer options. Name is the topic and Group the consumer group. Both are required.
	Name       string `option:"name"`
	Group      string `option:"group"`
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`
	// InstanceID makes the consumer a static member: if it returns with the same ID within 15 s,
	// for example after a restart, it keeps its partitions and no other member is interrupted. It
	// must be unique among the running consumers of a group.
	InstanceID string `option:"instance_id" doc:"The consumer's own name in its group: a restart within 15s then moves no partitions."`

	brokers        []string
	user, password string
	tokens         *token.Source
}

var compressions = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

// prepare sets the defaults and reports all mistakes, including those that the caller passes.
func (c *Config) prepare(mistakes ...error) (*codec.Codec, error) {
	broker.SetDefaults(c)
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	// This is the dialect of the CloudEvents Kafka protocol binding.
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{Prefix: "ce_", NoID: true})
	errs := append(broker.Negative(*c), err, c.parseURL(), errors.Join(mistakes...))
	if _, ok := compressions[c.Compression]; !ok {
		errs = append(errs, fmt.Errorf("compression is %q: want none, gzip, snappy, lz4 or zstd", c.Compression))
	}
	errs = append(errs, c.checkLogin(), refuse(c.Options))
	if c.MaxBytes < 1<<10 || c.MaxBytes > 64<<20 {
		errs = append(errs, fmt.Errorf("max_bytes is %d: want 1 KiB to 64 MiB", c.MaxBytes))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	return coder, nil
}

// parseURL reads the brokers, the credentials, and whether to use TLS. Its error never contains the
// URL.
func (c *Config) parseURL() error {
	scheme, _, _ := strings.Cut(c.URL, "://")
	c.brokers = nil
	invalid := errors.New("URL: want kafka://host:port or kafkas://host:port, or several hosts with commas in between")
	for _, address := range broker.SplitHosts(c.URL) {
		u, err := url.Parse(address)
		known := scheme == "kafka" || scheme == "kafkas"
		if err != nil || !known || u.Hostname() == "" || strings.Trim(u.RequestURI(), "/") != "" {
			return invalid
		}
		c.brokers = append(c.brokers, net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "9092")))
		c.user = u.User.Username()
		c.password, _ = u.User.Password()
	}
	if len(c.brokers) == 0 {
		return invalid
	}
	if scheme == "kafkas" && c.TLS == nil {
		c.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return nil
}

type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// client creates a client with the options. It does not connect.
func (c *Config) client(dial dialFunc, opts ...kgo.Opt) (*kgo.Client, error) {
	opts = slices.Concat([]kgo.Opt{kgo.ClientID("postrider")}, c.Options, opts, []kgo.Opt{
		kgo.SeedBrokers(c.brokers...),
		kgo.Dialer(dial),
		kgo.DisableClientMetrics(),
		kgo.RequestTimeoutOverhead(5 * time.Second),
		kgo.MetadataMinAge(250 * time.Millisecond),
		kgo.MetadataMaxAge(time.Minute),
		// Keep the backoff short: the relay handles longer ones.
		kgo.RetryBackoffFn(func(tries int) time.Duration { return min(50*time.Millisecond<<min(tries, 6), 2*time.Second) }),
	})
	if c.logsIn() {
		opts = append(opts, kgo.SASL(c.mechanism()))
	}
	return kgo.NewClient(opts...)
}

// dial opens a connection, with TLS if configured.
func (c *Config) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	conn, err := c.Dial(ctx, network, address)
	if err != nil || c.TLS == nil {
		return conn, err
	}
	return broker.Handshake(ctx, conn, address, c.TLS)
}
