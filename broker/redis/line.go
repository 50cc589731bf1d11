package redis

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
)

// line is a connection on which many commands are written at once. The client is not used because
// it allocates much per command, does not report whether a failed command was sent, and does not
// abort it when a context is cancelled.
type line struct {
	options  *redis.Options
	replicas int           // that must confirm
	wait     []byte        // the command that waits for replicas, if any
	breaks   *atomic.Int64 // count of broken connections to this server: after one, the others are not trusted either
	age      int64         // value of breaks when conn was opened
	conn     net.Conn      // nil if not connected
	in       *bufio.Reader
	watched  map[string]int64 // fences that the server watches for this connection, and their terms
}

// refusal is an error answer of the server.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError marks it as an error of the client's type.
func (r refusal) RedisError() {}

// open connects unless there is a connection that can be trusted.
func (l *line) open(ctx context.Context) error {
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
	return nil
}

// fail closes this connection, and the others to the server at their next use.
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
	// An empty transaction detects whether transactions are forbidden: otherwise the commands meant
	// for one would be executed without it.
	commands = appendCommand(appendCommand(commands, "MULTI"), "EXEC")
	// Check the replicas first: if they are missing, everything would be stored, not confirmed, and
	// sent again.
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

// enough reads the answer to WAIT.
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

// run writes commands and calls read to read the answers, within the time limits of ctx and the
// options. After an error the connection is closed.
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

// reply reads an answer: a number, the length of an array, or a text, which it skips.
func (l *line) reply() (n int, err error) {
	kind, n, err := l.head()
	if err == nil && kind == '$' {
		_, err = l.in.Discard(n + len("\r\n"))
	}
	return n, err
}

// text reads an answer that is a short text; empty if there is none.
func (l *line) text() (string, error) {
	kind, n, err := l.head()
	if err != nil || n < 0 {
		return "", err
	}
	text := make([]byte, min(n, 100)+len("\r\n"))
	if _, err = io.ReadFull(l.in, text); err == nil && (kind != '$' || n > 100) {
		err = fmt.Errorf("redis: expected a short text, got %q", text)
	}
	return string(text[:len(text)-len("\r\n")]), err
}

// head reads the first line of an answer: its kind, and its number if it has one.
func (l *line) head() (kind byte, n int, err error) {
	text, err := l.in.ReadSlice('\n')
	if err != nil {
		return 0, 0, fmt.Errorf("redis: waiting for an answer: %w", err)
	}
	kind, rest := text[0], text[1:max(1, len(text)-2)]
	switch kind {
	case '-':
		return 0, 0, refusal(rest)
	case ':', '*', '$':
		n, err = strconv.Atoi(string(rest))
	}
	return kind, n, err
}

func (l *line) close() {
	if l.conn != nil {
		_ = l.conn.Close()
		l.conn, l.watched = nil, nil
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
