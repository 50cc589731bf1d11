package inbox

import (
	"context"

	"github.com/postrider/postrider"
)

// observe tells the observer that a handler is called for messages, and returns a function that
// reports the result. A batch keeps the caller's context, because the contexts that the observer
// returns for its messages cannot be merged.
func (in *Inbox[Tx]) observe(ctx context.Context, msgs ...postrider.Message) (context.Context, func(error)) {
	o := in.cfg.Observer
	switch {
	case o == nil:
		return ctx, func(error) {}
	case len(msgs) == 1:
		return o.Handle(ctx, in.name, &msgs[0])
	}
	done := make([]func(error), len(msgs))
	for i := range msgs {
		_, done[i] = o.Handle(ctx, in.name, &msgs[i])
	}
	return ctx, func(err error) {
		for _, f := range done {
			f(err)
		}
	}
}
