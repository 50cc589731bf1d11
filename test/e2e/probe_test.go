package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxWait is how long a producer may wait for a lock. On a slow disk the limit is twice the time
// that the server takes to truncate a private table. The server fails a producer that waits longer
// than a second.
const maxWait = 50 * time.Millisecond

// probes are producers that measure how long they wait for locks.
type probes struct {
	s       *scene
	pool    *pgxpool.Pool
	done    chan struct{}
	once    sync.Once
	running sync.WaitGroup

	mu      sync.Mutex
	n, late int
	slowest time.Duration // insert
	waits   int           // for locks, longer than a millisecond
	longest time.Duration // of these waits
	bare    time.Duration // the slowest TRUNCATE of a private table
}

// probe starts producers. One writes all the time, so that some of its transactions begin at the
// rotation of a slot; those of the others last so long that they write to a slot that is about to
// be emptied.
func (s *scene) probe() *probes {
	s.t.Helper()
	p := &probes{s: s, done: make(chan struct{})}
	p.connect()
	s.t.Cleanup(p.stop) // in case the test fails first
	p.running.Go(func() {
		for p.pause(2 * time.Millisecond) {
			p.write("probe", 0)
		}
	})
	p.running.Go(p.empty)
	for i := range 4 {
		p.running.Go(func() {
			for p.pause(time.Millisecond) {
				p.write(fmt.Sprint("late", i), (ringSlots-1)*ringPeriod+rand.N(ringPeriod))
			}
		})
	}
	return p
}

// connect makes the server report every lock wait longer than deadlock_timeout, when it ends.
func (p *probes) connect() {
	p.s.t.Helper()
	config, err := pgxpool.ParseConfig(p.s.dsn)
	if err != nil {
		p.s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"lock_timeout": "1s", "log_lock_waits": "on", "deadlock_timeout": "1ms", "client_min_messages": "log",
	} {
		config.ConnConfig.RuntimeParams[name] = value
	}
	config.MaxConns = 8
	config.ConnConfig.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) { p.heard(n.Message) }
	if p.pool, err = pgxpool.NewWithConfig(p.s.t.Context(), config); err != nil {
		p.s.t.Fatal(err)
	}
	p.s.t.Cleanup(p.pool.Close)
}

var acquired = regexp.MustCompile(`acquired .* after ([0-9.]+) ms`)

func (p *probes) heard(notice string) {
	match := acquired.FindStringSubmatch(notice)
	if match == nil {
		return
	}
	ms, err := strconv.ParseFloat(match[1], 64)
	if err != nil {
		p.s.t.Errorf("%s: %v", notice, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits++
	p.longest = max(p.longest, time.Duration(ms*float64(time.Millisecond)))
}

func (p *probes) write(key string, age time.Duration) {
	var took time.Duration
	err := pgx.BeginFunc(p.s.t.Context(), p.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(p.s.t.Context(), "SELECT 1", pgx.QueryExecModeExec); err != nil { // so that the transaction has begun
			return err
		}
		p.pause(age)
		start := time.Now()
		_, err := p.s.enqueue(tx, key)
		took = time.Since(start)
		return err
	})
	if err != nil && p.s.t.Context().Err() == nil { // 55P03 lock_not_available: waited too long
		p.s.t.Errorf("%s: %v", key, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.n++
	if age > 0 {
		p.late++
	}
	p.slowest = max(p.slowest, took)
}

// empty truncates a private table now and then, to measure how long the server takes.
func (p *probes) empty() {
	table := pgx.Identifier{p.s.cfg.Schema, "emptied"}.Sanitize()
	do := func(sql string) {
		if _, err := p.pool.Exec(p.s.t.Context(), sql); err != nil && p.s.t.Context().Err() == nil {
			p.s.t.Errorf("%s: %v", sql, err)
		}
	}
	do("CREATE TABLE " + table + " (text text)")
	for p.pause(100 * time.Millisecond) {
		do("INSERT INTO " + table + " VALUES ('x')")
		start := time.Now()
		do("TRUNCATE " + table)
		took := time.Since(start)
		p.mu.Lock()
		p.bare = max(p.bare, took)
		p.mu.Unlock()
	}
	do("DROP TABLE " + table)
}

// check fails if a producer waited too long.
func (p *probes) check() {
	p.s.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if most := max(maxWait, 2*p.bare); p.longest > most {
		p.s.t.Errorf("a producer waited %s for a lock, want at most %s", p.longest, most)
	}
}

// pause returns false when the probes are to end.
func (p *probes) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-p.done:
		return false
	}
}

func (p *probes) stop() {
	p.once.Do(func() { close(p.done) })
	p.running.Wait()
}

func (p *probes) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprintf("%d probes, %d of them late: %d waited for a lock, at most %s; the slowest insert took %s, the slowest TRUNCATE beside %s",
		p.n, p.late, p.waits, p.longest, p.slowest.Round(100*time.Microsecond), p.bare.Round(100*time.Microsecond))
}
