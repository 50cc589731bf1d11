package fault_test

import (
	"context"
	"fmt"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

var loadChecks = map[string]func(s *scene){
	world.HotKey:          func(s *scene) { s.loaded(world.HotKey) },
	world.BulkTransaction: func(s *scene) { s.loaded(world.BulkTransaction) },
	world.TenantFlood:     func(s *scene) { s.loaded(world.TenantFlood) },
	world.Foreign:         func(s *scene) { s.loaded(world.Foreign) },
}

// loaded checks that a load begins as it is described, and ends when the fault is healed.
func (s *scene) loaded(kind string) {
	s.Helper()
	var begun world.Load
	ended := false
	s.OnLoad(func(_ context.Context, l world.Load) (func(context.Context) error, error) {
		begun = l
		return func(context.Context) error { ended = true; return nil }, nil
	})
	r := s.begin(kind, "")
	if begun.Kind != kind || begun.Destination != r.Target || ended {
		s.Errorf("%s of %s began as %+v, ended %t", kind, r.Target, begun, ended)
	}
	want := fmt.Sprintf("%d messages", begun.Messages)
	switch {
	case begun.Messages == 0:
		want = ""
	case kind == world.BulkTransaction && !begun.Commit:
		want += ", rolled back"
	}
	if r.Detail != want {
		s.Errorf("%q was said of %+v", r.Detail, begun)
	}
	s.heal(r)
	if !ended {
		s.Error("the load has not ended")
	}
}
