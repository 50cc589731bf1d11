package nats

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

// Config configures a [Publisher] or a [Consumer].
type Config struct {
	// URL is the address of a server, or several separated by commas:
	// nats://user:password@host:4222, or tls://. Required.
	URL string
	// TLS is the configuration for servers that require TLS. Defaults to the system's certificate
	// authorities if the scheme is tls.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and recoveries. Defaults to [slog.Default].
	Logger *slog.Logger
	// Options are further options of the client, such as another login method. Postrider's own
	// options take precedence, and options that would break its guarantees are refused. Defaults to
	// none.
	Options []client.Option

	CredentialsFile string        `option:"credentials_file" doc:"File with a user's JWT and seed, read for each connection."`
	NKeyFile        string        `option:"nkey_file" doc:"File with the seed of a user's nkey."`
	TokenFile       string        `option:"token_file" doc:"File with a token, read for each connection."`
	Domain          string        `option:"domain" doc:"Domain of JetStream, where a leaf node has another one."`
	APIPrefix       string        `option:"api_prefix" doc:"What the subjects of JetStream's API begin with, where an account imports them; instead of domain."`
	InboxPrefix     string        `option:"inbox_prefix" default:"_INBOX" doc:"What the subjects of answers begin with."`
	ConnectTimeout  time.Duration `option:"connect_timeout" default:"2s" doc:"How long one server may take to let us in."`
	Format          codec.Format  `option:"format"`
	Source          string        `option:"source"`

	// Publisher options.
	Stream     string        `option:"stream" doc:"The stream that must store the messages; default: any."`
	Atomic     bool          `option:"atomic" doc:"Send in atomic batches, for hot keys; the stream must allow it."`
	AckTimeout time.Duration `option:"ack_timeout" default:"5s" doc:"How long to wait for an acknowledgement."`
	MonitorURL string        `option:"monitor_url" doc:"Where sync_interval can be read, such as http://localhost:8222."`
	Replicas   int           `option:"replicas" default:"1" doc:"Replicas of a stream that Postrider creates."`

	// Consumer options. Name is the subject, which may have wildcards, and Group the durable
	// consumer. Both are required.
	Name       string        `option:"name"`
	Group      string        `option:"group"`
	InFlight   int           `option:"in_flight" default:"64"`
	MaxWaiting int           `option:"max_waiting" default:"1000"`
	Attempts   int           `option:"attempts" default:"10"`
	DeadLetter string        `option:"dead_letter"`
	AckWait    time.Duration `option:"ack_wait" default:"30s" doc:"When another gets the messages of a dead consumer; with ordered it is lease."`
	// Ordered keeps the order of a key among any number of processes of a group: one receives, the
	// others stand by. All processes of the group must set it.
	Ordered bool          `option:"ordered" doc:"Keep the order of a key among several processes of a group: one receives, the others stand by."`
	Lease   time.Duration `option:"lease" default:"10s" doc:"With ordered: after what silence of the process that receives another takes over; at least 1s."`
}

// prepare sets the defaults and reports all mistakes, including those that the caller passes.
func (c *Config) prepare(mistakes ...error) (*codec.Codec, error) {
	broker.SetDefaults(c)
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{Prefix: "ce-", Percent: true, ByType: true})
	errs := append(broker.Negative(*c), err, validURLs(c.URL), errors.Join(mistakes...))
	errs = append(errs, c.checkLogin(), refuse(c.Options))
	if c.Atomic && c.Stream == "" {
		errs = append(errs, errors.New("option atomic (Atomic) needs stream (Stream): a batch goes to one stream"))
	}
	if strings.ContainsAny(c.Stream+c.Group, notInNames) {
		errs = append(errs, fmt.Errorf("stream (Stream) %q, group (Group) %q: neither may have any of %q",
			c.Stream, c.Group, notInNames))
	}
	if c.Lease < time.Second {
		errs = append(errs, fmt.Errorf("lease (Lease) is %v, want at least 1s", c.Lease))
	}
	if c.Ordered {
		c.AckWait = c.Lease
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	return coder, nil
}

// notInNames lists the characters that names of streams and consumers must not contain.
const notInNames = " \t\r\n.*>/\\"

// validURLs never repeats its input in an error: it may contain a password, wherever the mistake
// is.
func validURLs(urls string) error {
	for i, address := range strings.Split(urls, ",") {
		u, err := url.Parse(strings.TrimSpace(address))
		if err != nil || u.Hostname() == "" || u.Scheme != "nats" && u.Scheme != "tls" {
			return fmt.Errorf("URL: address %d is not like nats://host:4222 or tls://host:4222", i+1)
		}
	}
	return nil
}

// link is a connection that never reconnects, so that its owner knows what was sent on which
// connection.
type link struct {
	conn *client.Conn
	js   jetstream.JetStream
	life context.Context // ends with the connection; the cause is the error
}

// connect opens a link. The end of ctx stops the attempt but does not close an open link.
func (c *Config) connect(ctx context.Context, name string, refused client.ErrHandler) (*link, error) {
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer context.AfterFunc(ctx, func() { end(ctx.Err()) })()
	var away away
	dial := func(network, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(life, c.ConnectTimeout)
		defer cancel()
		conn, err := c.Dial(ctx, network, address)
		if err == nil {
			context.AfterFunc(life, func() { _ = conn.Close() }) // also aborts a handshake in progress
		} else {
			away.add(err)
		}
		return conn, err
	}
	opts := append([]client.Option{client.Name(name)}, c.Options...)
	opts = append(opts,
		client.NoReconnect(),
		client.Timeout(c.ConnectTimeout),
		client.FlusherTimeout(c.ConnectTimeout),
		client.PingInterval(5*time.Second),
		client.MaxPingsOutstanding(2),
		client.CustomInboxPrefix(c.InboxPrefix),
		client.SetCustomDialer(dialer(dial)),
		client.ErrorHandler(refused),
		client.ClosedHandler(func(conn *client.Conn) { end(fmt.Errorf("nats: the connection was lost: %v", conn.LastError())) }), //nolint:errorlint // it may be nil
	)
	if c.TLS != nil {
		opts = append(opts, client.Secure(c.TLS))
	}
	login, err := c.login()
	if err != nil {
		end(err)
		return nil, err
	}
	conn, err := client.Connect(c.URL, append(opts, login...)...)
	if err != nil {
		err = away.explain(err)
		end(err)
		return nil, err
	}
	js, err := c.jetStream(conn)
	return &link{conn, js, life}, err
}

// away records which servers could not be reached in one attempt, and why. The client only reports
// that no server was available.
type away struct {
	mu   sync.Mutex
	errs []string
}

func (a *away) add(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.errs = append(a.errs, err.Error())
}

func (a *away) explain(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !errors.Is(err, client.ErrNoServers) || len(a.errs) == 0 {
		return err
	}
	return fmt.Errorf("%w: %s", err, strings.Join(a.errs, "; "))
}

func (l *link) Lost() <-chan struct{} { return l.life.Done() }

func (l *link) Close() {
	l.conn.Close()
	<-l.life.Done()
}

type dialer func(network, address string) (net.Conn, error)

func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }
