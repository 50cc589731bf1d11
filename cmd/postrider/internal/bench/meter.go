package bench

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// Application names, by which the server's statistics distinguish connections.
const (
	producerName = "postrider-bench-producers"
	relayName    = "postrider-bench-relays"
	benchName    = "postrider-bench"
)

// meter measures a whole server, which other clients must not use meanwhile.
type meter struct {
	pool       *pgxpool.Pool
	postmaster int // its process ID
}

// newMeter returns a meter if the server's processes are visible.
func newMeter(ctx context.Context, pool *pgxpool.Pool) (*meter, error) {
	if err := needsLinux(); err != nil {
		return nil, err
	}
	var pid int
	if err := pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return nil, err
	}
	own, err := readProcess(pid)
	if err != nil || own.name != "postgres" {
		return nil, errors.New("bench: the server's processes cannot be seen from here, and its processor time is to be measured: " +
			"run this where the server runs, without a pooler between")
	}
	return &meter{pool, own.parent}, nil
}

// reading holds the counters at one time.
type reading struct {
	at         time.Time
	wal, pages int64
	total      int64 // ticks of the whole server
	each       map[int]int64
	whose      map[int]string // process ID to application name
}

func (m *meter) read(ctx context.Context) (r reading, err error) {
	r.whose = make(map[int]string)
	rows, err := m.pool.Query(ctx, "SELECT pid, application_name FROM pg_stat_activity WHERE application_name LIKE 'postrider-bench%'")
	if err != nil {
		return r, err
	}
	var pid int
	var name string
	if _, err = pgx.ForEachRow(rows, []any{&pid, &name}, func() error {
		r.whose[pid] = name
		return nil
	}); err != nil {
		return r, err
	}
	err = m.pool.QueryRow(ctx, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint, (SELECT wal_fpi FROM pg_stat_wal)").Scan(&r.wal, &r.pages)
	if err != nil {
		return r, fmt.Errorf("bench: reading the position of the WAL: %w", err)
	}
	r.total, r.each, err = familyTime(m.postmaster)
	r.at = time.Now()
	return r, err
}

// since returns the differences between two readings.
func (r reading) since(before reading) scale.Phase {
	seconds := func(ticks int64) float64 { return float64(ticks) / ticksPerSecond }
	phase := scale.Phase{
		Seconds:   r.at.Sub(before.at).Seconds(),
		WAL:       r.wal - before.wal,
		FullPages: r.pages - before.pages,
	}
	var known int64
	for pid, name := range r.whose {
		used := r.each[pid] - before.each[pid]
		known += used
		switch name {
		case producerName:
			phase.CPU.Producers += seconds(used)
			phase.ProducerConnections++
		case relayName:
			phase.CPU.Readers += seconds(used)
			phase.RelayConnections++
		}
	}
	phase.CPU.Rest = seconds(max(0, r.total-before.total-known))
	return phase
}
