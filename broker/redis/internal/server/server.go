// Package server is what the brokers on top of Redis have in common: how the server is reached, what its errors mean,
// and what its confirmations are worth.
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
