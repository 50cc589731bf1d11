package saga

import (
	"context"
	"net"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
)

// cutting is how a knife cuts.
type cutting string

const (
	before  cutting = "the statement is not sent"
	unheard cutting = "the statement is executed, and its answer lost"
)

// knife cuts the connection of one statement, counted over all connections that have it.
type knife struct {
	at    int64
	how   func(conn *blade)
	count atomic.Int64
	fired atomic.Bool
	// last is the statement that was cut.
	last atomic.Value
}

func (k *knife) hold(cfg *pgx.ConnConfig) {
	cfg.Tracer = k
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &blade{Conn: conn}, nil
	}
}

// TraceQueryStart implements pgx.QueryTracer. What an idle runner asks is not counted: how often it does is a matter of time.
func (k *knife) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if strings.Contains(data.SQL, "saga_due") || strings.Contains(data.SQL, "json_each") || strings.Contains(data.SQL, "json_object_keys") {
		return ctx
	}
	if k.count.Add(1) == k.at {
		k.last.Store(data.SQL)
		k.how(conn.PgConn().Conn().(*blade))
		k.fired.Store(true)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (k *knife) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// blade is a connection that can be cut.
type blade struct {
	net.Conn
	deaf atomic.Bool
}

// Read waits for the answer before it loses it: the statement was executed.
func (b *blade) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if b.deaf.Load() {
		_ = b.Conn.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

func (c cutting) cut(conn *blade) {
	if c == before {
		_ = conn.Conn.Close()
		return
	}
	conn.deaf.Store(true)
}
