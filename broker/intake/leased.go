package intake

import (
	"context"
	"time"

	"github.com/postrider/postrider/broker/internal/lease"
)

// dropPatience is how long a handler may go on after the lease is lost before the log is told.
const dropPatience = 10 * time.Second

// Leased receives while this process has the lease that the store keeps, until the intake's context ends. Each term has a part of its
// own, which begins nothing after the term: what waits then is dropped, and handlers at work are cancelled. Nothing of the next term is
// received before they have returned.
//
// The context of receive ends with the term, or with the intake's. Receive returns soon after that; before, it may wait for the
// handlers with [Part.Wait], to give back what they have not done.
func (in *Intake) Leased(store lease.Store, cfg lease.Config, receive func(ctx context.Context, p *Part, t *lease.Term)) {
	lease.Run(in.ctx, store, cfg, func(ctx context.Context, t *lease.Term) {
		p := in.PartWhile(t.Valid)
		defer context.AfterFunc(t.Lost(), func() {
			if !p.Drop(dropPatience) {
				in.cfg.Logger.Error("consumer: a handler goes on though its lease is lost: another process may handle the same key meanwhile",
					"lease", cfg.Name, "waited", dropPatience)
			}
		})()
		receive(ctx, p, t)
		p.Wait()
	})
}
