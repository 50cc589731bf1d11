package redis

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
)

// line is a connection that many commands are written to at once. The client would do, but for two things: it allocates
// much for each command, and it neither says whether one that failed was sent nor ends it when a context is cancelled.
type line struct {
	options  *redis.Options
	replicas int           // that must have what is confirmed
	wait     []byte        // the command that waits for replicas, if there is to be one
	breaks   *atomic.Int64 // of all the publisher's connections to this server: the others are then not to be trusted either
	age      int64         // how many there had been when conn was opened
	conn     net.Conn      // nil when there is none
	in       *bufio.Reader
}

// refusal is an error that the server has answered.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError makes it one of the client's errors.
func (r refusal) RedisError() {}

// exchange writes commands and has read read the answers, within the time that ctx and the options allow. After an error
// the connection is gone; one that is marked as unavailable means that nothing was sent.
func (l *line) exchange(ctx context.Context, commands []byte, read func() error) error {
	if err := ctx.Err(); err != nil {
		return postrider.Unavailable(err)
	}
	if age := l.breaks.Load(); l.conn == nil || l.age != age {
		l.close()
		l.age = age
		if err := l.connect(ctx); err != nil {
			return postrider.Unavailable(fmt.Errorf("redis: connecting: %w", err))
		}
	}
	return l.run(ctx, commands, read)
}

// fail closes the connection, and all others to the server when they are next used.
func (l *line) fail() {
	l.breaks.Add(1)
	l.close()
}

func (l *line) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, l.options.DialTimeout)
	defer cancel()
	conn, err := l.options.Dialer(ctx, "tcp", l.options.Addr)
	if err != nil {
		return err
	}
	l.conn, l.in = conn, bufio.NewReaderSize(conn, 16<<10)
	var commands []byte
	answers := 2
	user, password, err := l.credentials(ctx)
	if err != nil {
		return err
	}
	if user != "" || password != "" {
		commands = appendCommand(commands, "AUTH", cmp.Or(user, "default"), password)
		answers++
	}
	if l.options.ClientName != "" {
		commands = appendCommand(commands, "CLIENT", "SETNAME", l.options.ClientName)
		answers++
	}
	if l.options.DB != 0 {
		commands = appendCommand(commands, "SELECT", strconv.Itoa(l.options.DB))
		answers++
	}
	// Where transactions are forbidden, what is meant to be in one would be stored without it: an empty one finds out.
	commands = appendCommand(appendCommand(commands, "MULTI"), "EXEC")
	// Where replicas are missing, all that is sent would be stored, not confirmed, and sent again: asking first stores it once.
	commands = append(commands, l.wait...)
	return l.run(ctx, commands, func() (err error) {
		for ; answers > 0 && err == nil; answers-- {
			_, err = l.reply()
		}
		if err == nil && l.wait != nil {
			err = l.enough()
		}
		return err
	})
}

var errReplicas = errors.New("too few replicas")

// enough reads the answer to wait.
func (l *line) enough() error {
	n, err := l.reply()
	if err == nil && n < l.replicas {
		err = fmt.Errorf("redis: %w: only %d of %d replicas have it", errReplicas, n, l.replicas)
	}
	return err
}

func (l *line) credentials(ctx context.Context) (user, password string, err error) {
	switch o := l.options; {
	case o.CredentialsProviderContext != nil:
		return o.CredentialsProviderContext(ctx)
	case o.CredentialsProvider != nil:
		user, password = o.CredentialsProvider()
		return user, password, nil
	default:
		return o.Username, o.Password, nil
	}
}

func (l *line) run(ctx context.Context, commands []byte, read func() error) error {
	conn := l.conn
	_ = conn.SetDeadline(time.Now().Add(l.options.ReadTimeout))
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	_, err := conn.Write(commands)
	if err == nil {
		err = read()
	}
	if !stop() || err != nil {
		l.close()
	}
	return err
}

// reply reads an answer: a number, the length of an array, or a text, which is skipped.
func (l *line) reply() (n int, err error) {
	text, err := l.in.ReadSlice('\n')
	if err != nil {
		return 0, fmt.Errorf("redis: waiting for an answer: %w", err)
	}
	kind, rest := text[0], text[1:max(1, len(text)-2)]
	switch kind {
	case '-':
		return 0, refusal(rest)
	case ':', '*', '$':
		n, err = strconv.Atoi(string(rest))
		if err == nil && kind == '$' {
			_, err = l.in.Discard(n + len("\r\n"))
		}
	}
	return n, err
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn = nil
	}
}

func appendCommand(out []byte, args ...string) []byte {
	out = appendLength(out, '*', len(args))
	for _, arg := range args {
		out = appendText(out, arg)
	}
	return out
}

func appendText[T string | []byte](out []byte, text T) []byte {
	out = append(appendLength(out, '$', len(text)), text...)
	return append(out, '\r', '\n')
}

func appendLength(out []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(out, kind), int64(n), 10), '\r', '\n')
}
