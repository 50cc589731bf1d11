package admin

import (
	"context"

	"github.com/postrider/postrider/store/feeds"
)

// Problems lists problems of destinations. Its cost is bounded, because a store keeps a limited
// number of problems.
type Problems interface {
	// Problems returns current and past problems of a feed's destination and of its names, last
	// seen first.
	Problems(ctx context.Context, feed string) ([]feeds.Problem, error)
}
