package tour

import (
	"context"
	"fmt"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
	"github.com/postrider/postrider/examples/admissions/demo/verdict"
)

// Partition cuts the relay and the workers off from the queue: first the network is silent, then no
// connection can be made. It begins while mails are being sent, because a message that the queue
// redelivers afterwards must not cause a second mail.
var Partition = Incident{Happen: partition}

func partition(ctx context.Context, t *Tour) error {
	if err := t.mailsGoOut(ctx); err != nil {
		return err
	}
	if err := t.stage.Freeze(stage.Network); err != nil {
		return err
	}
	then, err := t.count(ctx)
	if err != nil {
		return err
	}
	if then.Mailed >= t.people {
		return errTooLate
	}
	t.say("The network to the queue falls silent: connections stay, and nothing comes through. %d payments are prepared, %d mails are out.",
		then.Payments, then.Mailed)
	if err := t.standsStill(ctx, time.Second); err != nil {
		return err
	}
	if err := t.stage.Kill(ctx, stage.Network); err != nil {
		return err
	}
	t.say("Now the connections break. What was sent and not confirmed may have arrived or not: nobody can know.")
	if err := t.applyMeanwhile(ctx, max(t.people/20, 1)); err != nil {
		return err
	}
	if err := t.standsStill(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	t.say("Their messages wait in the database. The operator, who wants to know of all that is late by a second, sees:")
	t.show(ctx, "status", "--late", "1s")
	if err := t.stage.Start(stage.Network); err != nil {
		return err
	}
	t.say("The network is back. Relay and workers connect again by themselves.")
	return nil
}

// applyMeanwhile shows that applicants do not notice the partition, because the pages need only the
// database.
func (t *Tour) applyMeanwhile(ctx context.Context, more int) error {
	before, err := t.count(ctx)
	if err != nil {
		return err
	}
	t.crowd.Apply(ctx, "law", more)
	err = t.until(ctx, func(c verdict.Counts) error {
		if c.Applications < before.Applications+more {
			return fmt.Errorf("%d of %d have applied", c.Applications-before.Applications, more)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.say("%d more people apply meanwhile, and get their answer at once: the pages need the database, not the queue.", more)
	return nil
}
