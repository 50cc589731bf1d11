package fault_test

import (
	"slices"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

var consumerChecks = map[string]func(s *scene){
	"consumer-panic":     func(s *scene) { s.misbehaves("consumer-panic", "panic") },
	"consumer-hang":      func(s *scene) { s.misbehaves("consumer-hang", "hang") },
	"consumer-provider":  func(s *scene) { s.misbehaves("consumer-provider", "provider") },
	"consumer-rebalance": (*scene).rebalanced,
}

// misbehaves checks that the consumer and the receiver are told how to behave, and to stop it.
func (s *scene) misbehaves(kind, manner string) {
	s.Helper()
	s.heal(s.begin(kind, ""))
	said := s.receiver.all()
	if n := len(said); n < 4 || !strings.HasPrefix(said[n-4], manner+" ") || said[n-4] != said[n-3] || !slices.Equal(said[n-2:], []string{"ok 100", "ok 100"}) {
		s.Errorf("handlers were told %q", said)
	}
}

// rebalanced checks that a guest comes, comes again, and is gone in the end.
func (s *scene) rebalanced() {
	guest := s.Processes(world.Guest)[0]
	r := s.begin("consumer-rebalance", guest.Name())
	first := guest.PID()
	s.eventually("it comes again", func() bool { pid := guest.PID(); return pid != 0 && pid != first })
	s.heal(r)
	if guest.PID() != 0 {
		s.Error("it is still there")
	}
}
