package api

import (
	"context"
	"sync"
	"time"

	"github.com/postrider/postrider/admin"
)

// DatabaseHealth reports the health of a database. Durations are in seconds.
type DatabaseHealth struct {
	Name              string       `json:"name"`
	At                time.Time    `json:"at"`
	Server            string       `json:"server"`
	Schema            string       `json:"schema"`
	Version           int          `json:"version"`
	Size              int64        `json:"size"`
	Tables            []TableSize  `json:"tables"`
	Capacity          Capacity     `json:"capacity"`
	OldestTransaction float64      `json:"oldest_transaction"`
	OldestSnapshot    float64      `json:"oldest_snapshot"`
	Connections       int          `json:"connections"`
	MaxConnections    int          `json:"max_connections"`
	Slots             []admin.Slot `json:"slots"`
	DedupKeys         int64        `json:"dedup_keys"`
	IdempotencyKeys   int64        `json:"idempotency_keys"`
	Error             string       `json:"error,omitempty" doc:"it could not be asked"`
}

// TableSize is the size of a table.
type TableSize struct {
	Name       string    `json:"name"`
	Bytes      int64     `json:"bytes"`
	Rows       int64     `json:"rows"`
	DeadRows   int64     `json:"dead_rows"`
	LastVacuum time.Time `json:"last_vacuum,omitzero"`
}

// Capacity is the capacity of the log's ring.
type Capacity struct {
	Slots  int     `json:"slots"`
	Used   int     `json:"used"`
	Period float64 `json:"period"`
}

// health returns the health of all databases. A database that does not answer is reported as such.
func (s *Server) health(ctx context.Context, _ *database, _ *DB) ([]DatabaseHealth, error) {
	ctx, cancel := context.WithTimeout(ctx, timeLimit/2)
	defer cancel()
	all := make([]DatabaseHealth, len(s.databases))
	var asked sync.WaitGroup
	for i, d := range s.databases {
		asked.Go(func() {
			v, err := DatabaseHealth{}, error(nil)
			if d.Gauges != nil {
				v, err = d.health.get(ctx, d.askHealth)
			}
			if err != nil {
				v.Error, v.At = s.failure(ctx, d, err).Detail, time.Now().UTC()
			}
			v.Name, v.Tables, v.Slots = d.Name, append([]TableSize{}, v.Tables...), append([]admin.Slot{}, v.Slots...)
			all[i] = v
		})
	}
	asked.Wait()
	return all, nil
}

func (d *database) askHealth(ctx context.Context) (DatabaseHealth, error) {
	v, err := d.Gauges.Health(ctx)
	if err != nil {
		return DatabaseHealth{}, err
	}
	out := DatabaseHealth{
		At: v.At.UTC(), Server: v.Server, Schema: v.Schema, Version: v.Version, Size: v.Size, Slots: v.Slots,
		Capacity:          Capacity{v.Capacity.Slots, v.Capacity.Used, v.Capacity.Period.Seconds()},
		OldestTransaction: v.OldestTransaction.Seconds(), OldestSnapshot: v.OldestSnapshot.Seconds(),
		Connections: v.Connections, MaxConnections: v.MaxConnections, DedupKeys: v.DedupKeys, IdempotencyKeys: v.IdempotencyKeys,
	}
	for _, t := range v.Tables {
		out.Tables = append(out.Tables, TableSize{t.Name, t.Bytes, t.Rows, t.DeadRows, t.LastVacuum.UTC()})
	}
	return out, nil
}
