package classic_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/table"
	"github.com/postrider/postrider/store/table/tabletest"
	"github.com/postrider/postrider/test/fleet"
	"github.com/postrider/postrider/test/proof/history"
)

func TestMain(m *testing.M) {
	fleet.Main()
	os.Exit(m.Run())
}

// TestHistory combines all faults: writers that pause at the worst moments, and three relays that
// are killed, suspended past their lease and restarted at random. Everything committed arrives and
// nothing else does, the first arrivals of each key are in commit order, and every duplicate is
// explained by a kill or a suspension.
func TestHistory(t *testing.T) {
	need.Alone(t, "takes leases of two seconds, which a busy machine lets lapse")
	tabletest.InTurn(t, func(t *testing.T, open func(testing.TB) tabletest.Server) {
		s := open(t)
		messages := int64(20_000) // of which a quarter is rolled back
		if need.IsLong() {
			messages = 140_000
		}
		tabletest.Migrate(t, s, table.Config{})
		const lease = 2 * time.Second
		log := filepath.Join(t.TempDir(), "deliveries")
		relays := fleet.Start(t, fleet.Config{
			DSN: s.Address, Classic: s.Dialect, Log: log, Lease: lease, Batch: 37, Ahead: 300, Slow: 4 * time.Millisecond,
			Maintain: 500 * time.Millisecond,
		}, 3)
		start := time.Now()
		writers := produce(t, s, 32, messages, 200*time.Millisecond)
		done := make(chan struct{})
		faults := make(chan int)
		go func() { faults <- relays.Trouble(lease, done) }()
		writers.running.Wait()
		if n := writers.failed.Load(); n > 0 {
			t.Errorf("%d transactions failed", n)
		}
		wrote := time.Since(start)
		close(done)
		n := <-faults
		verdict := settle(t, writers.committed(t), log, time.Minute)
		relays.StopAll()
		t.Logf("%d faults, written in %s, all arrived after %s: %s", n, wrote.Round(time.Second), time.Since(start).Round(time.Second), verdict)
		if !verdict.Clean() {
			t.Error("the histories differ")
		}
		for _, d := range verdict.Duplicates {
			if !relays.Faulted(d.First.Process) && !relays.Faulted(d.Again.Process) {
				t.Fatalf("a duplicate that no fault explains: %+v", d)
			}
		}
	})
}

// settle waits until everything committed has arrived, or the time is up.
func settle(t *testing.T, committed []history.Fact, log string, within time.Duration) history.Verdict {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); ; {
		arrived, err := history.ReadLog(log)
		if err != nil {
			t.Fatal(err)
		}
		verdict := history.Compare(committed, arrived)
		if len(verdict.Lost) == 0 || time.Now().After(end) {
			return verdict
		}
		<-tick.C
	}
}
