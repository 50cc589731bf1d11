package reconcile

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider/reconcile"
)

var cases = []struct {
	name     string
	test     func(*testing.T, *school)
	inMemory bool // applies to an outbox in memory
}{
	{"Capacity", testCapacity, false},
	{"DuplicateSubmit", testDuplicateSubmit, false},
	{"LostEvent", testLostEvent, false},
	{"Restart", testRestart, true},
}

// answers counts the responses to many concurrent calls.
func (s *school) answers(calls int, student func(i int) string) map[string]int {
	s.t.Helper()
	var mu sync.Mutex
	counts := make(map[string]int)
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			<-start
			answer, err := s.enroll(s.t.Context(), "go", student(i))
			if err != nil {
				s.t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			counts[answer]++
		})
	}
	close(start)
	all.Wait()
	return counts
}

// testCapacity checks that 200 concurrent clients never get more seats than there are, and that
// every seat has one effect.
func testCapacity(t *testing.T, s *school) {
	const seats, clients = 60, 200
	s.exec("INSERT INTO @.courses VALUES ('go', $1)", seats)
	defer s.carry()()
	counts := s.answers(clients, func(i int) string { return fmt.Sprint("student ", i) })
	if counts[enrolled] != seats || counts[full] != clients-seats {
		t.Errorf("answers: %v", counts)
	}
	if taken, rows := s.number("SELECT taken FROM @.courses"), s.number("SELECT count(*) FROM @.enrollments"); taken != seats || rows != seats {
		t.Errorf("%d seats are taken, by %d enrollments", taken, rows)
	}
	s.await(seats)
}

// testDuplicateSubmit checks that of many submissions by one student exactly one succeeds, the
// others get the corresponding answer, and the effect happens once.
func testDuplicateSubmit(t *testing.T, s *school) {
	s.exec("INSERT INTO @.courses VALUES ('go', 10)")
	defer s.carry()()
	counts := s.answers(20, func(int) string { return "ann" })
	if counts[enrolled] != 1 || counts[alreadyExists] != 19 {
		t.Errorf("answers: %v", counts)
	}
	if taken := s.number("SELECT taken FROM @.courses"); taken != 1 {
		t.Errorf("%d seats are taken", taken)
	}
	s.await(1)
}

// testLostEvent checks that a reconciler repairs what was lost before the outbox and, with Again,
// what was lost after it.
func testLostEvent(t *testing.T, s *school) {
	s.exec("INSERT INTO @.courses VALUES ('go', 100)")
	stop := s.carry()
	defer func() { stop() }()
	s.lose.Store(true)
	s.answers(5, func(i int) string { return fmt.Sprint("forgotten ", i) })
	for deadline := time.Now().Add(30 * time.Second); s.lost.Load() < 5; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d were delivered", s.lost.Load())
		}
	}
	s.lose.Store(false)
	// Written without the service.
	s.exec("INSERT INTO @.enrollments (course, student) SELECT 'go', 'import ' || n FROM generate_series(1, 7) n")
	fixed, end := s.reconciler(reconcile.Again{Max: 3, After: 50 * time.Millisecond})
	s.await(12)
	end()
	// Each of the seven needs one message. One more is allowed where the relay was slower than the
	// interval.
	if n := fixed(); n < 12 || n > 7*4+5*3 {
		t.Errorf("fixed %d", n)
	}
}

// testRestart checks that the reconciler repairs what was lost with an outbox in memory.
func testRestart(t *testing.T, s *school) {
	s.exec("INSERT INTO @.courses VALUES ('go', 1000)")
	stop := s.carry()
	s.answers(20, func(i int) string { return fmt.Sprint("before ", i) })
	s.await(20)
	stop()
	s.answers(30, func(i int) string { return fmt.Sprint("undelivered ", i) })
	s.restart()
	stop = s.carry()
	defer func() { stop() }()
	fixed, end := s.reconciler(reconcile.Again{})
	var late atomic.Int64
	s.answers(20, func(int) string { return fmt.Sprint("after ", late.Add(1)) })
	s.await(70)
	end()
	if n := fixed(); n < 30 {
		t.Errorf("fixed %d of 30 that were lost", n)
	}
}
