package asynq

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// Config configures a [Publisher] or a [Consumer].
type Config struct {
	// URL is redis://user:password@host:port/database, or rediss:// for TLS; asynq:// and asynqs://
	// are synonyms. Required.
	URL string
	// TLS is used with rediss://. Defaults to the system's certificate authorities.
	TLS *tls.Config
	// Dial opens connections. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and handler failures. Defaults to [slog.Default].
	Logger *slog.Logger

	Queue   string        `option:"queue" default:"default" doc:"The queue; for consumers, unless there is a name."`
	Timeout time.Duration `option:"timeout" default:"10s" doc:"Longest wait for an answer of Redis."`
	Format  codec.Format  `option:"format"`
	Source  string        `option:"source"`

	// Publisher options. The defaults of MaxRetry and Retention are not zero: use -1 for none.
	MaxRetry    int           `option:"max_retry" default:"25" doc:"How often asynq tries a failed task again; 0 means never."`
	TaskTimeout time.Duration `option:"task_timeout" default:"30m" doc:"How long a worker may take for a task."`
	Retention   time.Duration `option:"retention" default:"24h" doc:"How long a task that is done is remembered."`
	Connections int           `option:"connections" default:"64" doc:"Most tasks on their way to Redis at a time."`

	// Consumer options. Name is the queue to take tasks of all types from, if it is not Queue.
	Name       string `option:"name"`
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`
}

// prepare sets the defaults and reports all mistakes.
func (c *Config) prepare() (*redis.Options, *codec.Codec, error) {
	broker.SetDefaults(c)
	c.MaxRetry, c.Retention = max(c.MaxRetry, 0), max(c.Retention, 0)
	address := c.URL
	if rest, ok := strings.CutPrefix(address, "asynq"); ok {
		address = "redis" + rest
	}
	options, err := server.Address{URL: address, TLS: c.TLS, Dial: c.Dial, Timeout: c.Timeout}.Options()
	coder, codecErr := codec.NewCodec(c.Format, c.Source, codec.Dialect{ByType: true})
	errs := append(broker.Negative(*c), err, codecErr)
	// Braces in a key determine its cluster node.
	if strings.TrimSpace(c.Queue) == "" || strings.ContainsAny(c.Queue+c.Name, "{}") {
		errs = append(errs, fmt.Errorf("queue: %q is not the name of a queue", c.Queue+c.Name))
	}
	if c.TaskTimeout < time.Second {
		errs = append(errs, fmt.Errorf("task_timeout: is %v, want at least 1s", c.TaskTimeout))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, nil, fmt.Errorf("asynq: %w", err)
	}
	return options.Simple(), coder, nil
}
