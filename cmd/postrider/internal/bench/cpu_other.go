//go:build !unix

package bench

import "time"

func ownTime() (time.Duration, bool) { return 0, false }
