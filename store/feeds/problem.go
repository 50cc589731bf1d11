package feeds

import (
	"context"
	"time"
)

// Problem describes a fault of a destination, or of one of its names, as a relay observed it.
type Problem struct {
	Name     string // see [broker.Namer]; empty for the destination as a whole
	Cause    string // the last error
	Failures int64  // failed messages, counted each time
	// Since is when the problem began, Last when it was last seen, and Over when the name accepted
	// a message again, zero if it has not. They are times of the store's clock.
	Since, Last, Over time.Time
}

// Reporter is implemented by a [Feed] whose store records problems of the feed's destination, so that operators can read the
// cause from the database, wherever the relay runs.
type Reporter interface {
	// Report records problems: for each Name either the Failures since the last report with their
	// Cause or, if Failures is 0, that the problem is over. A failure of a recovered name starts a
	// new problem. Relays call Report about once a second at most. The store keeps a bounded number
	// of names.
	Report(ctx context.Context, problems []Problem) error
}
