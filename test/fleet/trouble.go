package fleet

import (
	"math/rand/v2"
	"time"
)

// Trouble kills processes, suspends them past their lease and restarts them at random until done is
// closed. It leaves all of them running and returns the number of faults.
func (f *Fleet) Trouble(lease time.Duration, done <-chan struct{}) (faults int) {
	for {
		select {
		case <-done:
			return faults
		case <-time.After(rand.N(2 * time.Second)):
		}
		faults++
		place := rand.IntN(len(f.places))
		switch rand.IntN(3) {
		case 0:
			f.Kill(place)
			f.Restart(place)
		case 1:
			f.Pause(place, lease+rand.N(lease))
		case 2:
			f.Stop(place)
			f.Restart(place)
		}
	}
}
