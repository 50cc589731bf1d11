package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/history"
)

// commit writes one message for each key, with its fact, in one transaction. The keys must not be
// those of the writers.
func (s *scene) commit(keys ...string) (ids []postrider.ID, err error) {
	err = pgx.BeginFunc(s.t.Context(), s.pool, func(tx pgx.Tx) error {
		ids, err = s.enqueue(tx, keys...)
		return err
	})
	return ids, err
}

func (s *scene) enqueue(tx pgx.Tx, keys ...string) (ids []postrider.ID, err error) {
	var facts []string
	var msgs []postrider.Message
	for _, key := range keys {
		s.numbers.Add(1)
		id, n := postrider.NewID(), s.numbers.Load()
		ids = append(ids, id)
		facts = append(facts, fmt.Sprintf("('%s', '%s', %d)", id, key, n))
		msgs = append(msgs, postrider.Message{ID: id, Type: "fact", Key: key, Payload: fmt.Appendf(nil, "%s %d", key, n)})
	}
	_, err = tx.Exec(s.t.Context(), "INSERT INTO "+s.cfg.Schema+".facts VALUES "+strings.Join(facts, ", "), pgx.QueryExecModeExec)
	if err != nil {
		return nil, err
	}
	return ids, s.db.Outbox().Enqueue(s.t.Context(), tx, msgs...)
}

// keyOfEachShard returns one key for each shard.
func (s *scene) keyOfEachShard() []string {
	s.t.Helper()
	rows, err := s.pool.Query(s.t.Context(), "SELECT DISTINCT ON ("+s.cfg.Schema+".shard_of(key, 8)) key "+
		"FROM (SELECT 'm' || i FROM generate_series(1, 1000) i) k (key)", pgx.QueryExecModeExec)
	if err != nil {
		s.t.Fatal(err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		s.t.Fatal(err)
	}
	return keys
}

// ask scans the single value that a query returns, with @ replaced by the schema.
func (s *scene) ask(sql string, value any) {
	s.t.Helper()
	sql = strings.ReplaceAll(sql, "@.", s.cfg.Schema+".")
	if err := s.pool.QueryRow(s.t.Context(), sql, pgx.QueryExecModeExec).Scan(value); err != nil {
		s.t.Fatal(err)
	}
}

// tryEventually retries f until it succeeds, for at most half a minute.
func (s *scene) tryEventually(f func() error) {
	s.t.Helper()
	var err error
	if _, ok := s.eventually(30*time.Second, func() bool { err = f(); return err == nil }); !ok {
		s.t.Fatal(err)
	}
}

// follower reads a growing file of deliveries.
type follower struct {
	s    *scene
	log  string
	at   int64
	rest []byte // an incomplete line
	seen map[string]bool
}

func (s *scene) follow(log string) *follower {
	return &follower{s: s, log: log, seen: map[string]bool{}}
}

// count returns the number of distinct messages that have arrived.
func (f *follower) count() int {
	f.read()
	return len(f.seen)
}

// have reports whether all these messages have arrived.
func (f *follower) have(ids ...postrider.ID) bool {
	f.read()
	for _, id := range ids {
		if !f.seen[id.String()] {
			return false
		}
	}
	return true
}

func (f *follower) read() {
	f.s.t.Helper()
	file, err := os.Open(f.log)
	if os.IsNotExist(err) {
		return
	}
	if err != nil {
		f.s.t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Seek(f.at, io.SeekStart); err != nil {
		f.s.t.Fatal(err)
	}
	text, err := io.ReadAll(file)
	if err != nil {
		f.s.t.Fatal(err)
	}
	f.at += int64(len(text))
	f.rest = append(f.rest, text...)
	for {
		line, rest, ok := bytes.Cut(f.rest, []byte("\n"))
		if !ok {
			return
		}
		d, whole, err := history.ParseLine(string(line))
		if err != nil {
			f.s.t.Fatal(err)
		}
		if whole {
			f.seen[d.ID.String()] = true
		}
		f.rest = rest
	}
}
