package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/postrider/postrider/broker"
)

// Dial opens a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Address describes where Redis is and how to connect to it.
type Address struct {
	// URL is redis:// or rediss://. It may list several hosts, separated by commas, if Cluster or
	// Sentinel is set.
	URL string
	// TLS is used with rediss://. Defaults to the system's certificate authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial Dial
	// Timeout limits each wait for the server, in addition to the context.
	Timeout time.Duration
	// PasswordFile holds the user's password and is read for each connection.
	PasswordFile string
	// Cluster means that the hosts are nodes of a Redis Cluster.
	Cluster bool
	// Sentinel is the name of a primary; the hosts are then sentinels that know its address.
	Sentinel string
	// SentinelUser and SentinelPasswordFile are the credentials for the sentinels. The file is read
	// for each connection.
	SentinelUser, SentinelPasswordFile string
	// Client holds further options of the client.
	Client *redis.UniversalOptions
}

// Options returns options of a client that does not retry: a command that is sent again could
// arrive twice, or late. Errors never contain the URL.
func (a Address) Options() (*redis.UniversalOptions, error) {
	o, refused := a.own()
	first, err := a.parse(o)
	if err == nil {
		err = a.contradictions(first, len(o.Addrs))
	}
	if err = errors.Join(refused, err); err != nil {
		return nil, err
	}
	o.Username, o.Password, o.DB, o.IsClusterMode = first.Username, first.Password, first.DB, a.Cluster
	if a.PasswordFile != "" {
		o.CredentialsProviderContext = fromFile("password_file", a.PasswordFile, o.Username)
	}
	if a.Dial == nil {
		a.Dial = (&net.Dialer{KeepAlive: time.Minute}).DialContext
	}
	o.Dialer = a.Dial
	if first.TLSConfig != nil {
		o.Dialer = encrypted(a.Dial, a.TLS)
	}
	o.Protocol = 2 // the server sends no unsolicited messages
	o.MaxRetries, o.MaxRedirects, o.DialerRetries = -1, -1, 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = a.Timeout, a.Timeout, a.Timeout
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.PipelinePoolSize = -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	if a.Sentinel != "" {
		a.askSentinels(o)
	}
	return o, nil
}

// refused lists client options that other fields set, or that would break a guarantee.
var refused = map[string]string{
	"Addrs": "use URL", "Username": "use URL", "Password": "use URL", "DB": "use URL",
	"MasterName": "use Sentinel", "SentinelUsername": "use SentinelUser", "SentinelPassword": "use SentinelPasswordFile",
	"IsClusterMode": "use Cluster", "Dialer": "use Dial", "TLSConfig": "use TLS",
	"DialTimeout": "use Timeout", "ReadTimeout": "use Timeout", "WriteTimeout": "use Timeout",
	"MaxRetries":                   "what the client sends again can arrive twice, or after what follows",
	"MaxRedirects":                 "what the client sends again can arrive twice, or after what follows",
	"ReadOnly":                     "a replica does not know what was acknowledged",
	"RouteByLatency":               "a replica does not know what was acknowledged",
	"RouteRandomly":                "a replica does not know what was acknowledged",
	"Protocol":                     "it is 2, in which the server says nothing unasked",
	"OnConnect":                    "connections that publish are not the client's own",
	"StreamingCredentialsProvider": "use CredentialsProviderContext, which is asked for each connection",
}

// own returns a copy of the caller's client options, and an error if it sets refused ones.
func (a Address) own() (*redis.UniversalOptions, error) {
	if a.Client == nil {
		return &redis.UniversalOptions{}, nil
	}
	o := *a.Client
	return &o, broker.Refuse(o, refused)
}

// parse parses the URL of each host; they differ in the host only.
func (a Address) parse(o *redis.UniversalOptions) (first *redis.Options, err error) {
	invalid := errors.New("url: is not an address such as redis://localhost:6379/0 or rediss://user:password@host:6379/0")
	for _, address := range broker.SplitHosts(a.URL) {
		u, err := url.Parse(address)
		if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Host == "" || u.RawQuery != "" {
			return nil, invalid
		}
		one, err := redis.ParseURL(address)
		if err != nil {
			return nil, errors.New("url: the path is not the number of a database")
		}
		if first == nil {
			first = one
		}
		o.Addrs = append(o.Addrs, one.Addr)
	}
	if first == nil {
		return nil, invalid
	}
	return first, nil
}

func (a Address) contradictions(o *redis.Options, hosts int) error {
	var errs []error
	for _, is := range []struct {
		wrong bool
		text  string
	}{
		{a.TLS != nil && o.TLSConfig == nil, "url and tls: certificates are set, but redis:// is not encrypted: use rediss://"},
		{hosts > 1 && !a.Cluster && a.Sentinel == "", "url: has several hosts: want cluster for nodes of a cluster, or sentinel for sentinels"},
		{a.Cluster && a.Sentinel != "", "cluster and sentinel are both set: a cluster has no sentinels"},
		{a.Cluster && o.DB != 0, "cluster is set, and url has a database other than 0: a cluster has no others"},
		{a.PasswordFile != "" && o.Password != "", "password_file is set, and url has a password: want one of them"},
		{a.Sentinel == "" && (a.SentinelUser != "" || a.SentinelPasswordFile != ""), "sentinel_user or sentinel_password_file is set, but sentinel is not"},
		{a.SentinelUser != "" && a.SentinelPasswordFile == "", "sentinel_user is set, but sentinel_password_file is not"},
	} {
		if is.wrong {
			errs = append(errs, errors.New(is.text))
		}
	}
	return errors.Join(errs...)
}

func fromFile(option, file, user string) func(context.Context) (string, string, error) {
	return func(context.Context) (string, string, error) {
		password, err := broker.ReadSecret(option, file)
		return user, password, err
	}
}

// encrypted adds the TLS handshake, which the client leaves to a custom dialer. The server name is
// the dialled host.
func encrypted(dial Dial, config *tls.Config) Dial {
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return broker.Handshake(ctx, conn, address, config)
	}
}

// askSentinels makes each connection go to the server that a sentinel currently names as the
// primary. A demoted primary answers READONLY, after which its connections are closed.
func (a Address) askSentinels(o *redis.UniversalOptions) {
	sentinels, dial := o.Addrs, o.Dialer
	asking := redis.Options{
		Dialer: dial, Protocol: 2, MaxRetries: -1, DialerRetries: 1, PoolSize: 1, DisableIdentity: true, ContextTimeoutEnabled: true,
		DialTimeout: a.Timeout, ReadTimeout: a.Timeout, WriteTimeout: a.Timeout, MaintNotificationsConfig: o.MaintNotificationsConfig,
	}
	if a.SentinelPasswordFile != "" {
		asking.CredentialsProviderContext = fromFile("sentinel_password_file", a.SentinelPasswordFile, a.SentinelUser)
	}
	o.Addrs = sentinels[:1]
	o.Dialer = func(ctx context.Context, network, _ string) (net.Conn, error) {
		var errs []error
		for _, sentinel := range sentinels {
			// A sentinel that does not answer must not use up the time of the others.
			one, cancel := context.WithTimeout(ctx, a.Timeout/time.Duration(len(sentinels)+1))
			options := asking
			options.Addr = sentinel
			client := redis.NewSentinelClient(&options)
			primary, err := client.GetMasterAddrByName(one, a.Sentinel).Result()
			cancel()
			_ = client.Close()
			if errors.Is(err, redis.Nil) {
				err = fmt.Errorf("knows no primary %q", a.Sentinel)
			}
			if err == nil && len(primary) == 2 {
				return dial(ctx, network, net.JoinHostPort(primary[0], primary[1]))
			}
			errs = append(errs, fmt.Errorf("sentinel %s: %w", sentinel, err))
		}
		return nil, errors.Join(errs...)
	}
}
