package tour

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
	"github.com/postrider/postrider/examples/admissions/demo/verdict"
)

// Crash kills workers in the middle of their jobs, and then the relay while it sends, together with
// the pages and the workers.
var Crash = Incident{Happen: crash}

func crash(ctx context.Context, t *Tour) error {
	err := t.until(ctx, func(c verdict.Counts) error {
		if c.Verified == 0 || c.Applications < t.people/4 {
			return fmt.Errorf("%d of %d have applied, %d are verified", c.Applications, t.people, c.Verified)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.killWorkers(ctx); err != nil {
		return err
	}
	if err := t.catchRelay(ctx); err != nil {
		return err
	}
	victims := slices.DeleteFunc(t.stage.All(), func(name string) bool {
		return name == stage.Network || name == stage.Paydesk || name == stage.Mail || name == stage.Workers
	})
	if err := t.stage.Kill(ctx, victims...); err != nil {
		return err
	}
	then, err := t.count(ctx)
	if err != nil {
		return err
	}
	pending, err := t.pending(ctx)
	if err != nil {
		return err
	}
	t.say("kill -9 to %s. By then %d people had applied; %d messages were not sent yet, %d documents verified, %d payments prepared.",
		strings.Join(victims, ", "), then.Applications, pending, then.Verified, then.Payments)
	// A mail server cannot take part in a transaction: if a worker crashed between the server's
	// answer and its own commit, it would send the mail again.
	t.say("The worker that mails is stopped too, but may finish the mail in its hands: mails cannot be rolled back.")
	if err := t.stage.End(ctx, mailers(t.stage)...); err != nil {
		return err
	}
	if err := t.standsStill(ctx, 1500*time.Millisecond); err != nil {
		return err
	}
	t.say("Nothing moves. Applicants get no answer, and try again. The operator, who wants to know of all that is late by a second, sees:")
	t.show(ctx, "status", "--late", "1s")
	if err := t.stage.Start(t.stage.All()...); err != nil {
		return err
	}
	t.say("Everything is started again. Nobody repairs anything: the log knows what was not sent, the queue what was not confirmed. The new relay takes over when the lease of the dead one has run out.")
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return t.stage.Ready(ready)
}

// killWorkers kills only the workers. The relay has recorded its messages as sent and does not send
// them again, so only the queue can redeliver what the workers held.
func (t *Tour) killWorkers(ctx context.Context) error {
	mail := mailers(t.stage)
	victims := slices.DeleteFunc(t.stage.Workers(), func(name string) bool { return slices.Contains(mail, name) })
	if len(victims) == 0 {
		return nil
	}
	if err := t.stage.Kill(ctx, victims...); err != nil {
		return err
	}
	then, err := t.count(ctx)
	if err != nil {
		return err
	}
	t.say("kill -9 to %s, with jobs in their hands, after %d documents. They are started again at once.", strings.Join(victims, ", "), then.Verified)
	if err := t.stage.Start(victims...); err != nil {
		return err
	}
	return t.until(ctx, func(c verdict.Counts) error {
		if c.Verified <= then.Verified && c.Verified < c.Applications {
			return fmt.Errorf("still %d documents are verified", c.Verified)
		}
		return nil
	})
}

func mailers(s *stage.Stage) []string {
	return slices.DeleteFunc(s.Workers(), func(name string) bool { return name == stage.Verify || name == stage.Payment })
}

// catchRelay freezes the relay so that it certainly has unsent messages when it is killed. If all
// applicants are done already, more people apply.
func (t *Tour) catchRelay(ctx context.Context) error {
	if err := t.stage.Freeze(stage.Relay); err != nil {
		return err
	}
	pending, err := t.pending(ctx)
	if err != nil || pending > 0 {
		return err
	}
	before := t.crowd.Accepted()
	t.crowd.Apply(ctx, "law", max(t.people/4, 1))
	return t.until(ctx, func(verdict.Counts) error {
		if t.crowd.Accepted() == before {
			return errors.New("nobody has applied yet")
		}
		return nil
	})
}

// pending returns the number of messages that wait for the relay.
func (t *Tour) pending(ctx context.Context) (n int, err error) {
	said, err := t.stage.Command(ctx, t.stage.Postrider, "feeds", "ls", "--json")
	if err != nil {
		return 0, err
	}
	var feeds []struct{ Pending int }
	err = json.Unmarshal([]byte(said), &feeds)
	for _, f := range feeds {
		n += f.Pending
	}
	return n, err
}

// standsStill waits until the applicants of the tour have made no progress for some time.
func (t *Tour) standsStill(ctx context.Context, quiet time.Duration) error {
	var last verdict.Counts
	since := time.Now()
	return t.until(ctx, func(c verdict.Counts) error {
		if c.Verified != last.Verified || c.Payments != last.Payments || c.Mailed != last.Mailed {
			last, since = c, time.Now()
		}
		if time.Since(since) < quiet {
			return fmt.Errorf("the applications still move: %+v", c)
		}
		return nil
	})
}
