package inbox

import (
	"context"

	"github.com/postrider/postrider"
)

// observe tells the observer that a handler is called for messages. Several have no context in common that would be theirs.
func (in *Inbox[Tx]) observe(ctx context.Context, msgs ...postrider.Message) (context.Context, func(error)) {
	o := in.cfg.Observer
	switch {
	case o == nil:
		return ctx, func(error) {}
	case len(msgs) == 1:
		return o.Handle(ctx, in.name, &msgs[0])
	}
	told := make([]func(error), len(msgs))
	for i := range msgs {
		_, told[i] = o.Handle(ctx, in.name, &msgs[i])
	}
	return ctx, func(err error) {
		for _, tell := range told {
			tell(err)
		}
	}
}
