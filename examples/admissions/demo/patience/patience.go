// Package patience asks again and again.
package patience

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Until tries until there is no error, or one that more tries do not change. When the time is over it returns the last error that
// was not about the time.
func Until(ctx context.Context, every time.Duration, hopeless error, try func() error) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last error
	for {
		err := try()
		if err == nil || errors.Is(err, hopeless) {
			return err
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", ctx.Err(), cmp.Or(last, err))
		}
	}
}
