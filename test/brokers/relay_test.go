// Package brokers tests the complete path, from a commit in PostgreSQL through the relay to a
// consumer of each broker, over good and bad networks.
package brokers_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestThroughRelay delivers a log to each broker while it is being written.
func TestThroughRelay(t *testing.T) {
	each(t, func(t *testing.T, b server) {
		s := newScene(t, pgtest.Env(t, "POSTRIDER_TEST_POSTGRES18"), b.create(t), 100)
		s.enqueue(2000)
		r, stop := s.carry(b.publisher(t, s.name))
		s.enqueue(3000)
		s.delivered(r, s.committed.Load(), time.Minute)
		stop()
		v := s.hear(b.consumer(t, s.name), time.Minute)
		s.expect(v, !b.unordered)
		if v.received != v.distinct {
			t.Errorf("%d repetitions on a good network", v.received-v.distinct)
		}
	})
}
