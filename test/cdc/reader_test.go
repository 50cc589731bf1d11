package cdc_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// reader reads a replication slot as Debezium and other readers do: everything committed after the
// last confirmed position, in commit order.
type reader struct {
	*decoder
	conn     *pgconn.PgConn
	read     uint64 // everything before this position has arrived
	answered time.Time
}

// openReader starts at the slot's position. The connection of a dead reader may still hold the slot
// for a moment.
func openReader(ctx context.Context, dsn, slot, publication string) (*reader, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["replication"] = "database"
	start := fmt.Sprintf("START_REPLICATION SLOT %s LOGICAL 0/0 (proto_version '1', publication_names '%s')", slot, publication)
	for {
		conn, err := pgconn.ConnectConfig(ctx, cfg)
		if err != nil {
			return nil, err
		}
		err = begin(ctx, conn, start)
		if err == nil {
			return &reader{decoder: newDecoder(), conn: conn}, nil
		}
		_ = conn.Close(ctx)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != "55006" { // object_in_use
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(err, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func begin(ctx context.Context, conn *pgconn.PgConn, start string) error {
	conn.Frontend().Send(&pgproto3.Query{String: start})
	if err := conn.Frontend().Flush(); err != nil {
		return err
	}
	for {
		m, err := conn.ReceiveMessage(ctx)
		if err != nil {
			return err
		}
		switch m := m.(type) {
		case *pgproto3.CopyBothResponse:
			return nil
		case *pgproto3.ErrorResponse:
			return pgconn.ErrorResponseToPgError(m)
		}
	}
}

// next returns the rows of the next transaction, or none when everything before the given position
// has arrived.
func (r *reader) next(ctx context.Context, until uint64) ([]row, error) {
	for r.read < until {
		if time.Since(r.answered) > 100*time.Millisecond {
			// Zero confirms nothing; the response says how far the server has read.
			if err := r.status(0, true); err != nil {
				return nil, err
			}
		}
		wait, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		m, err := r.conn.ReceiveMessage(wait)
		cancel()
		if err != nil {
			if pgconn.Timeout(err) && ctx.Err() == nil {
				continue
			}
			return nil, err
		}
		data, ok := m.(*pgproto3.CopyData)
		if !ok {
			return nil, fmt.Errorf("the server sent a %T", m)
		}
		switch body := data.Data[1:]; data.Data[0] {
		case 'k': // keepalive: position, time, whether a reply is requested
			r.read = max(r.read, binary.BigEndian.Uint64(body))
		case 'w': // data: position, end of the log, time
			rows, end, err := r.decode(body[24:])
			if err != nil {
				return nil, err
			}
			r.read = max(r.read, end)
			if len(rows) > 0 {
				return rows, nil
			}
		}
	}
	return nil, nil
}

// confirm lets the server discard everything that has been read.
func (r *reader) confirm() error { return r.status(r.read, false) }

func (r *reader) status(position uint64, answer bool) error {
	r.answered = time.Now()
	data := []byte{'r'}
	for range 3 { // written, flushed, applied
		data = binary.BigEndian.AppendUint64(data, position)
	}
	data = binary.BigEndian.AppendUint64(data, 0) // our time
	if answer {
		data = append(data, 1)
	} else {
		data = append(data, 0)
	}
	r.conn.Frontend().Send(&pgproto3.CopyData{Data: data})
	return r.conn.Frontend().Flush()
}

// kill closes the connection without a termination message.
func (r *reader) kill() { _ = r.conn.Conn().Close() }
