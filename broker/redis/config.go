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
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// Config configures a [Publisher] or a [Consumer].
type Config struct {
	// URL is redis://user:password@host:port/database, or rediss:// for TLS. With Cluster or
	// Sentinel it may list several hosts, separated by commas. Required.
	URL string
	// TLS is used with rediss://. Defaults to the system's certificate authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and handler failures. Defaults to [slog.Default].
	Logger *slog.Logger

	// Client holds further options of the client, such as a source of credentials. Options that
	// would break a guarantee, or that other fields set, are refused by name. Defaults to none.
	Client *redis.UniversalOptions

	PasswordFile         string `option:"password_file" doc:"File with the user's password, read for each connection."`
	Cluster              bool   `option:"cluster" default:"false" doc:"The hosts are nodes of a Redis Cluster."`
	Sentinel             string `option:"sentinel" doc:"Name of the primary; the hosts are sentinels, which know its address."`
	SentinelUser         string `option:"sentinel_user" doc:"User of the sentinels."`
	SentinelPasswordFile string `option:"sentinel_password_file" doc:"File with the sentinels' password, read for each connection."`

	Timeout time.Duration `option:"timeout" default:"10s" doc:"Longest wait for an answer."`
	Format  codec.Format  `option:"format"`
	Source  string        `option:"source"`

	// Publisher options.
	Connections  int           `option:"connections" default:"8" doc:"Most calls of the server at a time."`
	WaitReplicas int           `option:"wait_replicas" doc:"Replicas that must have a message for it to count as confirmed."`
	WaitTimeout  time.Duration `option:"wait_timeout" default:"1s" doc:"Longest wait for the replicas, less than timeout."`

	// Consumer options. Name is the stream and is required. Group is the consumer group, by default
	// "postrider". Both are created if missing; a new group starts at the oldest entry. Member
	// defaults to the host's name plus a random suffix. A process that restarts with the same
	// Member immediately receives its unfinished entries; it must be unique among running
	// processes.
	Name       string        `option:"name"`
	Group      string        `option:"group" default:"postrider"`
	InFlight   int           `option:"in_flight" default:"64"`
	MaxWaiting int           `option:"max_waiting" default:"1000"`
	Attempts   int           `option:"attempts" default:"10"`
	DeadLetter string        `option:"dead_letter"`
	Member     string        `option:"consumer" doc:"The consumer's own name in its group."`
	ClaimIdle  time.Duration `option:"claim_idle" default:"1m" doc:"After what silence another member's messages are taken over."`
	// Trim is the interval for removing entries that all groups of the stream have acknowledged. A
	// group that is created later does not receive them. Defaults to 0: streams are not trimmed.
	Trim time.Duration `option:"trim" doc:"How often entries are removed that all groups of the stream have acknowledged; at least 1s. By default they stay."`
	// Ordered keeps the order of a key among any number of processes of a group: one receives, the
	// others stand by. All processes of the group must set it.
	Ordered bool          `option:"ordered" doc:"Keep the order of a key among several processes of a group: one receives, the others stand by."`
	Lease   time.Duration `option:"lease" default:"10s" doc:"With ordered: after what silence of the process that receives another takes over; at least 1s."`
}

// prepare sets the defaults and reports all mistakes, including those that the caller passes.
func (c *Config) prepare(mistakes ...error) (*redis.UniversalOptions, *codec.Codec, error) {
	broker.SetDefaults(c)
	if c.Member == "" {
		host, _ := os.Hostname()
		c.Member = host + "-" + rand.Text()[:8]
	}
	// The server assigns an entry's own ID, so the message's ID is sent as a header.
	coder, codecErr := codec.NewCodec(c.Format, c.Source, codec.Dialect{NoID: true})
	options, err := server.Address{
		URL: c.URL, TLS: c.TLS, Dial: c.Dial, Timeout: c.Timeout, PasswordFile: c.PasswordFile, Cluster: c.Cluster,
		Sentinel: c.Sentinel, SentinelUser: c.SentinelUser, SentinelPasswordFile: c.SentinelPasswordFile, Client: c.Client,
	}.Options()
	errs := append(broker.Negative(*c), codecErr, err, errors.Join(mistakes...))
	if c.WaitReplicas > 0 && c.WaitTimeout >= c.Timeout {
		errs = append(errs, fmt.Errorf("wait_timeout and timeout: %v is not less than %v", c.WaitTimeout, c.Timeout))
	}
	if c.ClaimIdle < time.Second {
		errs = append(errs, fmt.Errorf("claim_idle: is %v, want at least 1s", c.ClaimIdle))
	}
	if c.Cluster && c.Ordered && strings.Contains(c.Name, "}") && !hasTag(c.Name) {
		errs = append(errs, fmt.Errorf("name: %q has a brace that ends nothing: with cluster and ordered, no key for the lease is in its slot", c.Name))
	}
	if c.Trim != 0 && c.Trim < time.Second {
		errs = append(errs, fmt.Errorf("trim: is %v, want 0 or at least 1s", c.Trim))
	}
	if c.Lease < time.Second {
		errs = append(errs, fmt.Errorf("lease: is %v, want at least 1s", c.Lease))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, fmt.Errorf("redis: %w", err)
	}
	return options, coder, nil
}
