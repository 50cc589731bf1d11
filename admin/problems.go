package admin

import (
	"context"

	"github.com/postrider/postrider/store/feeds"
)

// Problems are what is wrong with destinations. Its cost does not grow with anything: a store keeps a bounded number of them.
type Problems interface {
	// Problems returns what is or was wrong with a feed's destination and the names of it, those last seen first.
	Problems(ctx context.Context, feed string) ([]feeds.Problem, error)
}
