package postrider

import (
	"context"
	"time"
)

// Problem is what is wrong with a destination, or with one name of it, as a relay has seen it.
type Problem struct {
	Name     string // see [Namer]; empty for the destination as a whole
	Cause    string // the last error
	Failures int64  // messages that have failed, each time counted
	// Since is when it began, Last when it was last seen, and Over when the name accepted a message again; the zero time means
	// that it has not. They are those of the store's clock.
	Since, Last, Over time.Time
}

// Reporter is implemented by a [Feed] whose store keeps what is wrong with the feed's destination, so that whoever asks the
// database learns the cause, wherever the relay runs.
type Reporter interface {
	// Report adds to what is known: of each Problem the Name, and either the Failures since the last report with their
	// Cause or, if Failures is 0, that it is over. A name that was well before begins anew. It is called at most about once
	// a second; the store keeps a bounded number of names.
	Report(ctx context.Context, problems []Problem) error
}
