// Package server holds what the brokers on top of Redis share: connecting to the server,
// classifying its errors, and inspecting its durability.
package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
)

// IsReply reports whether err is an answer of the server: it received the command and refused it.
func IsReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

// HasCode reports whether err is an answer that begins with one of the codes, such as "WRONGTYPE".
func HasCode(err error, codes ...string) bool {
	return slices.ContainsFunc(codes, func(code string) bool { return redis.HasErrorPrefix(err, code) })
}

// down lists answers of a server that currently accepts nothing from us.
var down = []string{
	"LOADING", "MASTERDOWN", "READONLY", "CLUSTERDOWN", "OOM", "MISCONF", "NOREPLICAS", "BUSY ", "TRYAGAIN",
	"NOAUTH", "WRONGPASS", "EXECABORT", "MOVED", "ASK", "max number of clients reached", "unknown command",
}

// Classify marks the refusal of a command that would have stored a message. Errors that are not
// answers are returned unchanged: their outcome is unknown.
func Classify(err error) error {
	switch {
	case HasCode(err, down...):
		return postrider.Unavailable(err)
	case HasCode(err, "WRONGTYPE", "The stream has exhausted the last possible ID"):
		return postrider.NameUnavailable(err)
	case HasCode(err, "NOPERM"):
		// Without access to a key, messages for other keys are accepted; without access to the
		// command, no message is.
		if strings.Contains(err.Error(), "key") {
			return postrider.NameUnavailable(err)
		}
		return postrider.Unavailable(err)
	default:
		return err
	}
}

var logOnce sync.Once

// LogTo redirects the log of the Redis client, which is global to the process, from standard error
// to the logger, at debug level. It is meant for programs, which own the process; only the first
// call has an effect. Nil means [slog.Default].
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
