package bench

import (
	"fmt"
	"time"
)

const progressInterval = 200 * time.Millisecond

func (l *Lab) progressf(format string, args ...any) { l.Progress(fmt.Sprintf(format, args...)) }

// delivering returns a function that reports the progress of a delivery.
func (l *Lab) delivering(what string) func(delivered, count int64) {
	var shown time.Time
	return func(delivered, count int64) {
		if time.Since(shown) > progressInterval {
			shown = time.Now()
			l.progressf("%s: %d of %d delivered", what, delivered, count)
		}
	}
}

// counting reports the progress of a phase until the returned function is called.
func (l *Lab) counting(what string, whole time.Duration) (stop func()) {
	start := time.Now()
	tick := time.NewTicker(progressInterval)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			l.progressf("%s: %.0f of %.0f s", what, min(time.Since(start), whole).Seconds(), whole.Seconds())
			select {
			case <-tick.C:
			case <-done:
				return
			}
		}
	}()
	return func() {
		tick.Stop()
		close(done)
		<-ended
	}
}
