package bench

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/sleep"
)

// yardstick measures the speed of the machine during the soak test: the duration of work that is
// independent of messages. On shared machines processors and disks can become slower, which could
// otherwise not be distinguished from a slower relay.
type yardstick struct {
	file *os.File
	stop context.CancelFunc
	run  sync.WaitGroup

	mu    sync.Mutex
	times []int64 // nanoseconds, since the last take
	err   error
}

const (
	yardstickPause = 100 * time.Millisecond
	yardstickHash  = 1 << 20 // bytes
	yardstickWrite = 8 << 10
)

func newYardstick(ctx context.Context) (*yardstick, error) {
	file, err := os.CreateTemp("", "postrider-bench-yardstick-")
	if err != nil {
		return nil, err
	}
	y := &yardstick{file: file}
	ctx, y.stop = context.WithCancel(ctx)
	y.run.Go(func() {
		data := noise(yardstickHash)
		for sleep.For(ctx, yardstickPause) {
			start := time.Now()
			sum := sha256.Sum256(data)
			copy(data, sum[:])
			_, err := file.WriteAt(data[:yardstickWrite], 0)
			err = errors.Join(err, file.Sync())
			y.mu.Lock()
			y.times, y.err = append(y.times, int64(time.Since(start))), err
			y.mu.Unlock()
			if err != nil {
				return
			}
		}
	})
	return y, nil
}

// take returns the median duration since the last call, in milliseconds.
func (y *yardstick) take() (float64, error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	middle := milliseconds(percentile(y.times, 0.50))
	y.times = y.times[:0]
	return middle, y.err
}

func (y *yardstick) close() error {
	y.stop()
	y.run.Wait()
	return errors.Join(y.file.Close(), os.Remove(y.file.Name()))
}
