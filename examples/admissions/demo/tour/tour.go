// Package tour injects failures into a running service under load and reports what happens. At the
// end it compares what the applicants were promised with the database, the payment provider's books
// and the mailbox.
package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider/examples/admissions/demo/crowd"
	"github.com/postrider/postrider/examples/admissions/demo/stage"
	"github.com/postrider/postrider/examples/admissions/demo/verdict"
	"github.com/postrider/postrider/internal/phrase"
)

// Incident is a failure that happens while people apply.
type Incident struct {
	// Before is called before people apply; it may be nil.
	Before func(context.Context, *Tour) error
	// Happen is called while their applications are being processed.
	Happen func(context.Context, *Tour) error
}

// Tour is one run: a crowd and its incidents.
type Tour struct {
	stage  *stage.Stage
	crowd  *crowd.Crowd
	db     *pgxpool.Pool
	out    io.Writer
	people int
	lines  int
}

// patience is the time limit of a tour. An applicant without the promised result by then counts as
// lost. It is long because asynq redelivers the task of a disconnected worker only after a minute
// or two.
const patience = 5 * time.Minute

// errTooLate means that the failure would have had no effect.
var errTooLate = errors.New("everything was done before it could fail: let more people apply")

// Play starts all applicants at once, plays the incidents one after the other, and returns an error
// unless every applicant then has exactly what was promised.
func Play(ctx context.Context, s *stage.Stage, out io.Writer, people int, incidents ...Incident) error {
	db, err := pgxpool.New(ctx, s.Database)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, stop := context.WithTimeout(ctx, patience)
	t := &Tour{stage: s, crowd: crowd.New(s.Settings.Pages), db: db, out: out, people: people}
	defer func() { stop(); _ = t.crowd.Wait() }()
	return t.play(ctx, incidents)
}

func (t *Tour) play(ctx context.Context, incidents []Incident) error {
	for _, i := range incidents {
		if i.Before != nil {
			if err := i.Before(ctx, t); err != nil {
				return err
			}
		}
	}
	began := time.Now()
	t.say("%d people send the form at once.", t.people)
	t.crowd.Apply(ctx, "computing", t.people)
	for _, i := range incidents {
		if err := i.Happen(ctx, t); err != nil {
			return err
		}
	}
	unsettled := t.settle(ctx, began)
	if errors.Is(unsettled, context.Canceled) {
		return unsettled
	}
	// Check even if the time is over, to find out which promises are not kept.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer stop()
	return errors.Join(unsettled, t.check(ctx))
}

// settle waits until everybody has paid and all mails have been sent.
func (t *Tour) settle(ctx context.Context, began time.Time) error {
	if err := t.crowd.Wait(); err != nil {
		return err
	}
	if err := t.mailed(ctx); err != nil {
		return err
	}
	t.say("All %d have paid, and the last mail went out %.1f s after the first form was sent.", t.crowd.Paid(), time.Since(began).Seconds())
	if n := t.crowd.Retries(); n > 0 {
		t.say("%d times somebody got no answer, and asked again with the same key.", n)
	}
	// Copies of messages may still be in the queue. The messages of a new applicant come after
	// them.
	t.say("One more person applies. When she has her mail, whatever was in the queue before has been worked off, copies too.")
	t.crowd.Apply(ctx, "law", 1)
	if err := t.crowd.Wait(); err != nil {
		return err
	}
	return t.mailed(ctx)
}

func (t *Tour) mailed(ctx context.Context) error {
	return t.until(ctx, func(c verdict.Counts) error {
		if c.Mailed < t.crowd.Accepted() {
			return fmt.Errorf("%d of %d applicants have got their mail", c.Mailed, t.crowd.Accepted())
		}
		return nil
	})
}

// check compares the promises with the facts.
func (t *Tour) check(ctx context.Context) error {
	facts, err := verdict.Read(ctx, t.db, t.stage.Maildir, "@"+t.crowd.Domain)
	if err != nil {
		return err
	}
	v := verdict.Check(t.crowd.Promises(), facts)
	t.say("Checked in the database, at the payment provider and in the mailbox. %s.", v)
	if !v.Clean() {
		return errors.New("the promise was not kept")
	}
	return verdict.Seats(ctx, t.db)
}

// say prints a numbered line.
func (t *Tour) say(format string, args ...any) {
	t.lines++
	fmt.Fprintf(t.out, "%2d  %s\n", t.lines, fmt.Sprintf(format, args...))
}

// show prints the output of an operator's command, and ignores its exit code, because some commands
// report problems by it.
func (t *Tour) show(ctx context.Context, args ...string) string {
	said, _ := t.stage.Command(ctx, t.stage.Postrider, args...)
	typed := "postrider"
	for _, arg := range args {
		typed += " " + phrase.ShellWord(arg)
	}
	fmt.Fprintf(t.out, "\n      $ %s\n", typed)
	for line := range strings.Lines(said) {
		fmt.Fprintf(t.out, "      %s", line)
	}
	fmt.Fprintln(t.out)
	return said
}

// mailsGoOut waits until the first mails have been sent.
func (t *Tour) mailsGoOut(ctx context.Context) error {
	return t.until(ctx, func(c verdict.Counts) error {
		if c.Mailed < t.people/20 {
			return fmt.Errorf("%d of %d mails are out", c.Mailed, t.people)
		}
		return nil
	})
}

// count returns the progress of the tour's applicants.
func (t *Tour) count(ctx context.Context) (verdict.Counts, error) {
	return verdict.Count(ctx, t.db, "@"+t.crowd.Domain)
}

// until waits until the progress of the applicants satisfies ok.
func (t *Tour) until(ctx context.Context, ok func(verdict.Counts) error) error {
	return stage.Until(ctx, func() error {
		c, err := t.count(ctx)
		if err != nil {
			return err
		}
		return ok(c)
	})
}
