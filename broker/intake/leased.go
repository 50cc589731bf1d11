package intake

import (
	"context"
	"time"

	"github.com/postrider/postrider/broker/internal/lease"
)

// dropTimeout is how long a handler may continue after the lease is lost before that is logged.
const dropTimeout = 10 * time.Second

// Leased calls receive while this process owns the lease in the store, until the intake's context
// ends. Each term has its own part, which starts nothing after the term: waiting messages are
// dropped and running handlers are cancelled. The next term does not begin until they have
// returned.
//
// The context of receive ends with the term or with the intake's context. Receive must return soon
// after. It may call [Part.Wait] first, to give back messages that were not handled.
func (in *Intake) Leased(store lease.Store, cfg lease.Config, receive func(ctx context.Context, p *Part, t *lease.Term)) {
	lease.Run(in.ctx, store, cfg, func(ctx context.Context, t *lease.Term) {
		p := in.PartWhile(t.Valid)
		defer context.AfterFunc(t.Lost(), func() { //nolint:contextcheck // a term outlives the context
			if !p.Drop(dropTimeout) {
				in.cfg.Logger.Error("consumer: a handler is still running although the lease is lost; another process may handle the same key",
					"lease", cfg.Name, "waited", dropTimeout)
			}
		})()
		receive(ctx, p, t)
		p.Wait()
	})
}
