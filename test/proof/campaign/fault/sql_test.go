package fault_test

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

var sqlChecks = map[string]func(s *scene){
	"backend-terminate":    (*scene).terminated,
	"held-transaction":     (*scene).transactionHeld,
	"lock-table":           (*scene).tableLocked,
	"prepared-transaction": (*scene).transactionPrepared,
	"vacuum-full":          (*scene).vacuumed,
	"statistics-reset":     (*scene).statisticsForgotten,
}

func (s *scene) terminated() {
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.ConsumerDSN())
	if err != nil {
		s.Fatal(err)
	}
	defer conn.Close(ctx)
	r := s.begin("backend-terminate", "")
	for err == nil {
		_, err = conn.Exec(ctx, "SELECT pg_sleep(0.1)")
	}
	if ctx.Err() != nil {
		s.Error("the session was not terminated")
	}
	s.heal(r)
}

func (s *scene) transactionHeld() {
	const held = "SELECT count(*)::text FROM pg_stat_activity WHERE application_name = 'fault' AND state = 'idle in transaction' AND backend_xid IS NOT NULL"
	r := s.begin("held-transaction", "")
	s.expect(held, "1")
	s.heal(r)
	s.eventually("it has ended", func() bool { return s.ask(held) == "0" })
}

func (s *scene) tableLocked() {
	r := s.begin("lock-table", "")
	s.unanswered(s.AdminDSN(), "SELECT count(*) FROM "+r.Target)
	s.heal(r)
	s.exec(s.AdminDSN(), "SELECT count(*) FROM "+r.Target)
}

func (s *scene) transactionPrepared() {
	const prepared = "SELECT count(*)::text FROM pg_prepared_xacts"
	r := s.begin("prepared-transaction", "")
	s.expect(prepared, "1")
	s.heal(r)
	s.expect(prepared, "0")
}

func (s *scene) vacuumed() {
	r := s.begin("vacuum-full", "postrider.checkpoints")
	before := s.ask("SELECT pg_relation_filenode('postrider.checkpoints')::text")
	s.heal(r)
	r = s.begin("vacuum-full", "postrider.checkpoints")
	defer s.heal(r)
	if s.ask("SELECT pg_relation_filenode('postrider.checkpoints')::text") == before {
		s.Error("the table was not rewritten")
	}
}

func (s *scene) statisticsForgotten() {
	const known = "SELECT count(*)::text FROM pg_stats WHERE schemaname = 'postrider' AND tablename = 'checkpoints'"
	s.exec(s.AdminDSN(), "ANALYZE postrider.checkpoints")
	if s.ask(known) == "0" {
		s.Fatal("nothing is known before")
	}
	s.heal(s.begin("statistics-reset", ""))
	s.expect(known, "0")
}
