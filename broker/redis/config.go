package redis

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/redis/server"
	"github.com/postrider/postrider/wire"
)

// Config is what a [Publisher] or a [Consumer] needs to know.
type Config struct {
	// URL is redis://user:password@host:port/database, or rediss:// for TLS. Required.
	URL string
	// TLS is used with rediss://. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to the usual way.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger is told of outages and failing handlers. Defaults to [slog.Default].
	Logger *slog.Logger

	PasswordFile string `option:"password_file" doc:"File with the user's password, read for each connection."`

	Timeout time.Duration `option:"timeout" default:"10s" doc:"Longest wait for an answer."`
	Format  wire.Format   `option:"format"`
	Source  string        `option:"source"`

	// For the publisher.
	Connections  int           `option:"connections" default:"8" doc:"Most calls of the server at a time."`
	WaitReplicas int           `option:"wait_replicas" doc:"Replicas that must have a message for it to count as confirmed."`
	WaitTimeout  time.Duration `option:"wait_timeout" default:"1s" doc:"Longest wait for the replicas, less than timeout."`

	// For the consumer: Name is the stream, which is required, and Group the consumer group, by default "postrider". Both
	// are made if they are not there; a new group begins with the oldest entry. Member defaults to the host's name and
	// something random. A process that starts again under the same one gets at once what it had not finished; two at the
	// same time must not share one.
	Name       string        `option:"name"`
	Group      string        `option:"group" default:"postrider"`
	InFlight   int           `option:"in_flight" default:"64"`
	MaxWaiting int           `option:"max_waiting" default:"1000"`
	Attempts   int           `option:"attempts" default:"10"`
	DeadLetter string        `option:"dead_letter"`
	Member     string        `option:"consumer" doc:"The consumer's own name in its group."`
	ClaimIdle  time.Duration `option:"claim_idle" default:"1m" doc:"After what silence another member's messages are taken over."`
	// Ordered lets any number of processes of a group run and keeps the order of a key among them: one receives, the others
	// stand by. All of them must set it.
	Ordered bool          `option:"ordered" doc:"Keep the order of a key among several processes of a group: one receives, the others stand by."`
	Lease   time.Duration `option:"lease" default:"10s" doc:"With ordered: after what silence of the process that receives another takes over; at least 1s."`
}

// prepare sets the defaults and reports all mistakes, those of the caller among them.
func (c *Config) prepare(mistakes ...error) (*redis.Options, *wire.Codec, error) {
	broker.SetDefaults(c)
	if c.Member == "" {
		host, _ := os.Hostname()
		c.Member = host + "-" + rand.Text()[:8]
	}
	// An entry's own ID is the server's, so that a message's ID travels among the headers.
	codec, codecErr := wire.NewCodec(c.Format, c.Source, wire.Dialect{NoID: true})
	options, err := server.Options(c.URL, c.TLS, c.Dial, c.Timeout)
	errs := append(broker.Negative(*c), codecErr, err, errors.Join(mistakes...))
	if err == nil && c.PasswordFile != "" {
		if options.Password != "" {
			errs = append(errs, errors.New("password_file is set, and URL has a password: want one of them"))
		}
		user, file := options.Username, c.PasswordFile
		options.CredentialsProviderContext = func(context.Context) (string, string, error) {
			password, err := broker.ReadSecret("password_file", file)
			return user, password, err
		}
	}
	if c.WaitReplicas > 0 && c.WaitTimeout >= c.Timeout {
		errs = append(errs, fmt.Errorf("wait_timeout and timeout: %v is not less than %v", c.WaitTimeout, c.Timeout))
	}
	if c.ClaimIdle < time.Second {
		errs = append(errs, fmt.Errorf("claim_idle: is %v, want at least 1s", c.ClaimIdle))
	}
	if c.Lease < time.Second {
		errs = append(errs, fmt.Errorf("lease: is %v, want at least 1s", c.Lease))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, fmt.Errorf("redis: %w", err)
	}
	return options, codec, nil
}
