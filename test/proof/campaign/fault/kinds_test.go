package fault_test

import (
	"slices"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// TestFaults begins and heals every kind once, and checks its effect. All kinds use one world, so
// the test also shows that each leaves the world unchanged.
func TestFaults(t *testing.T) {
	need.Long(t, "six minutes")
	s := newScene(t)
	checks := map[string]func(s *scene){}
	for _, group := range []map[string]func(s *scene){
		processChecks, databaseChecks, sqlChecks, networkChecks, brokerChecks, httpChecks, consumerChecks, operatorChecks, loadChecks,
	} {
		for name, check := range group {
			checks[name] = check
		}
	}
	for name := range s.kinds {
		if checks[name] == nil {
			t.Errorf("%s has no check", name)
		}
	}
	names := make([]string, 0, len(checks))
	for name := range checks {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			if err := s.kinds[name].Available(s.World); err != nil {
				t.Skip(err) // which fails the check: an untested fault proves nothing
			}
			one := &scene{T: t, World: s.World, kinds: s.kinds, receiver: s.receiver}
			checks[name](one)
			one.well()
		})
	}
}

// well checks that every process runs and can be reached.
func (s *scene) well() {
	s.Helper()
	for _, role := range []world.Role{world.Relay, world.Producer, world.Consumer, world.Receiver} {
		for _, p := range s.Processes(role) {
			if p.PID() == 0 || p.Paused() || p.Ends() > 0 {
				s.Errorf("%s: number %d, paused %t, has ended by itself %d times", p.Name(), p.PID(), p.Paused(), p.Ends())
			}
		}
	}
	for _, dsn := range []string{s.ProducerDSN(), s.PooledDSN(), s.ConsumerDSN(), s.AdminDSN()} {
		s.exec(dsn, "INSERT INTO facts VALUES ('well')")
	}
}
