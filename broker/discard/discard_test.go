package discard_test

import (
	"sync"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/discard"
)

func TestCountsWhatItConfirms(t *testing.T) {
	p := discard.New()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				if errs := p.Publish(t.Context(), make([]postrider.Message, 3)); errs != nil {
					t.Error(errs)
				}
			}
		})
	}
	wg.Wait()
	if p.Count() != 2400 {
		t.Errorf("Count() = %d, want 2400", p.Count())
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
