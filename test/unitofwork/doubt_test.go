package unitofwork_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/store/unitofwork"
)

// placed is the result of one order through a proxy.
type placed struct {
	err            error
	runs           int
	rows, messages int
	took           time.Duration
}

// place places one order. Only its first COMMIT meets a fault.
func (s *scene) place(ctx context.Context, what fault, change func(*postgres.Config)) placed {
	s.t.Helper()
	var commits atomic.Int64
	s.proxy.onCommit(func() (fault, time.Duration) {
		if commits.Add(1) > 1 {
			return none, 0
		}
		return what, 20 * time.Millisecond
	})
	var p placed
	begin := time.Now()
	o := &order{id: "42"}
	o.place()
	p.err = s.work(change).Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
		p.runs++
		return errors.Join(unitofwork.Track(ctx, o), insertPgx(ctx, tx, s.in("INSERT INTO @.orders VALUES ($1)"), o.id))
	})
	p.took = time.Since(begin)
	p.rows, p.messages = s.rows()[o.id], s.messages()[o.id]
	return p
}

func newest(t *testing.T) *scene { return newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18")) }

// TestForgottenSession has a session wait for a COMMIT that will not come. The session is
// terminated, and the function runs again.
func TestForgottenSession(t *testing.T) {
	p := newest(t).place(t.Context(), cutForgotten, nil)
	if p.err != nil || p.runs != 2 || p.rows != 1 || p.messages != 1 || p.took > 15*time.Second {
		t.Errorf("got %+v", p)
	}
}

// TestCrashBetweenCommitAndQuestion crashes the server before the outcome is queried: then its
// answer "committed" is not trusted, but "aborted" is.
func TestCrashBetweenCommitAndQuestion(t *testing.T) {
	for name, crash := range map[string]string{
		"emptied": "DELETE FROM @.generation",
		"renewed": "UPDATE @.generation SET id = gen_random_uuid()", // as relays do, afterwards
	} {
		t.Run(name, func(t *testing.T) {
			s := newest(t)
			s.proxy.onQuestion(func() bool {
				s.exec(crash) // before each query
				return false
			})
			if p := s.place(t.Context(), cutAnswer, nil); !errors.Is(p.err, postrider.ErrUncertain) || p.runs != 1 {
				t.Errorf("committed: got %+v", p)
			}
			s.exec("DELETE FROM @.orders")
			if p := s.place(t.Context(), cutBefore, nil); p.err != nil || p.runs != 2 || p.rows != 1 {
				t.Errorf("aborted: got %+v", p)
			}
			// The generation exists again for later clients.
			s.proxy.onQuestion(func() bool { return false })
			s.exec("DELETE FROM @.orders")
			if p := s.place(t.Context(), cutAnswer, nil); p.err != nil || p.runs != 1 || p.rows != 1 {
				t.Errorf("later: got %+v", p)
			}
		})
	}
}

// TestNobodyAnswers checks that an outcome that cannot be determined is reported, in time.
func TestNobodyAnswers(t *testing.T) {
	s := newest(t)
	s.proxy.onQuestion(func() bool { return true })
	timeout := 300 * time.Millisecond
	p := s.place(t.Context(), cutAnswer, func(c *postgres.Config) { c.Transactor.ResolveTimeout = timeout })
	if !errors.Is(p.err, postrider.ErrUncertain) || p.runs != 1 || p.rows != 1 || p.took < timeout {
		t.Errorf("got %+v", p)
	}
}

func TestLeaveUncertain(t *testing.T) {
	for _, what := range []fault{cutBefore, cutAnswer} {
		p := newest(t).place(t.Context(), what, func(c *postgres.Config) { c.Transactor.LeaveUncertain = true })
		if !errors.Is(p.err, postrider.ErrUncertain) || p.runs != 1 {
			t.Errorf("fault %d: got %+v", what, p)
		}
	}
}

// TestContextEndsDuringCommit checks that the end of the caller's context during COMMIT does not
// make the outcome uncertain.
func TestContextEndsDuringCommit(t *testing.T) {
	for name, what := range map[string]fault{"answered": none, "answer lost": cutAnswer, "lost": cutBefore} {
		t.Run(name, func(t *testing.T) {
			s := newest(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var p placed
			done := make(chan struct{})
			commits := make(chan struct{}, 1)
			go func() {
				defer close(done)
				o := &order{id: "42"}
				o.place()
				s.proxy.onCommit(func() (fault, time.Duration) {
					commits <- struct{}{}
					<-ctx.Done()
					return what, 0
				})
				p.err = s.work(nil).Do(ctx, func(ctx context.Context, tx pgx.Tx) error {
					return errors.Join(unitofwork.Track(ctx, o), insertPgx(ctx, tx, s.in("INSERT INTO @.orders VALUES ($1)"), o.id))
				})
			}()
			<-commits
			cancel()
			<-done
			rows, messages := s.rows()["42"], s.messages()["42"]
			switch {
			case what == cutBefore && (!errors.Is(p.err, context.Canceled) || rows+messages != 0):
				t.Errorf("got %v, %d rows, %d messages", p.err, rows, messages)
			case what != cutBefore && (p.err != nil || rows != 1 || messages != 1):
				t.Errorf("got %v, %d rows, %d messages", p.err, rows, messages)
			}
		})
	}
}

// TestNothingWritten checks that a transaction without writes has no uncertain outcome.
func TestNothingWritten(t *testing.T) {
	s := newest(t)
	for _, what := range []fault{cutBefore, cutAnswer} {
		s.proxy.onCommit(func() (fault, time.Duration) { return what, 0 })
		runs := 0
		err := s.work(nil).Do(t.Context(), func(ctx context.Context, tx pgx.Tx) error {
			runs++
			var one int
			return tx.QueryRow(ctx, "SELECT 1").Scan(&one)
		})
		if err != nil || runs != 1 {
			t.Errorf("fault %d: %v after %d runs", what, err, runs)
		}
	}
}
