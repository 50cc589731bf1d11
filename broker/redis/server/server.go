// Package server is what the brokers on top of Redis have in common: how the server is reached, what its errors mean,
// and what its confirmations are worth.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/postrider/postrider"
)

// Dial opens a connection.
type Dial = func(ctx context.Context, network, address string) (net.Conn, error)

// Options returns the client's options for a URL, which is redis:// or rediss://. The client does not try again by
// itself: what was sent twice could arrive twice, or late. The timeout bounds each wait for the server, beside the
// context. Errors never contain the URL.
func Options(address string, config *tls.Config, dial Dial, timeout time.Duration) (*redis.Options, error) {
	u, err := url.Parse(address)
	if err != nil || (u.Scheme != "redis" && u.Scheme != "rediss") || u.Host == "" || u.RawQuery != "" {
		return nil, errors.New("url: is not an address such as redis://localhost:6379/0 or rediss://user:password@host:6379/0")
	}
	if config != nil && u.Scheme == "redis" {
		return nil, errors.New("url and tls: certificates are set, but redis:// is not encrypted: use rediss://")
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, errors.New("url: the path is not the number of a database")
	}
	if config != nil {
		name := o.TLSConfig.ServerName
		o.TLSConfig = config.Clone()
		if o.TLSConfig.ServerName == "" {
			o.TLSConfig.ServerName = name
		}
	}
	if dial == nil {
		dial = (&net.Dialer{KeepAlive: time.Minute}).DialContext
	}
	o.Dialer = encrypted(dial, o.TLSConfig)
	o.Protocol = 2 // no unasked messages from the server
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout = timeout, timeout, timeout
	o.ContextTimeoutEnabled = true
	o.DisableIdentity = true
	o.PipelinePoolSize = -1
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return o, nil
}

// encrypted does the TLS handshake, if there is to be one: the client leaves that to whoever dials.
func encrypted(dial Dial, config *tls.Config) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil || config == nil {
			return conn, err
		}
		secure := tls.Client(conn, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
			return nil, err
		}
		return secure, nil
	}
}

// IsReply reports whether err is what the server has answered: it has received the command and refused it.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// HasCode reports whether err is an answer that begins with one of the codes, such as "WRONGTYPE".
func HasCode(err error, codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}

// down are the answers of a server that takes nothing from us at the moment, whatever we send.
var down = []string{
	"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "BUSY ", "TRYAGAIN",
	"NOAUTH", "WRONGPASS", "EXECABORT", "MOVED", "ASK", "max number of clients reached", "unknown command",
}

// Classify marks the server's refusal of a command that would have stored a message. Errors that are no answer are
// returned as they are: their outcome is unknown.
func Classify(err error) error {
	switch {
	case HasCode(err, down...):
		return postrider.Unavailable(err)
	case HasCode(err, "WRONGTYPE", "The stream has exhausted the last possible ID"):
		return postrider.NameUnavailable(err)
	case HasCode(err, "NOPERM"):
		// Without the right to a key, messages for other keys are accepted; without the right to the command, none is.
		if strings.Contains(err.Error(), "key") {
			return postrider.NameUnavailable(err)
		}
		return postrider.Unavailable(err)
	default:
		return err
	}
}

var logOnce sync.Once

// LogTo has what the client of the whole process says about itself go to the logger, at the level of debugging, instead
// of to standard error. It is for programs, which own the process; the first logger stays. Nil means [slog.Default].
func LogTo(l *slog.Logger) {
	if l == nil {
		l = slog.Default()
	}
	logOnce.Do(func() { redis.SetLogger(clientLog{l}) })
}

type clientLog struct{ *slog.Logger }

// Printf implements the client's own interface.
func (l clientLog) Printf(ctx context.Context, format string, values ...any) {
	l.DebugContext(ctx, "redis: client", "says", fmt.Sprintf(format, values...))
}
