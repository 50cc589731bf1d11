package tour

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
)

// Deploy restarts everything cleanly, one process after the other, while mails are being sent, as a
// deployment does.
var Deploy = Incident{Happen: deploy}

func deploy(ctx context.Context, t *Tour) error {
	if err := t.mailsGoOut(ctx); err != nil {
		return err
	}
	then, err := t.count(ctx)
	if err != nil {
		return err
	}
	if then.Mailed >= t.people {
		return errTooLate
	}
	ours := slices.DeleteFunc(t.stage.All(), func(name string) bool { return name == stage.Network || name == stage.Paydesk })
	t.say("A new version is deployed while mails go out, %d until now: %s are stopped and started, one after the other.", then.Mailed, strings.Join(ours, ", "))
	for _, name := range slices.Backward(ours) {
		if err := t.stage.End(ctx, name); err != nil {
			return err
		}
		if err := t.stage.Start(name); err != nil {
			return err
		}
	}
	ready, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return t.stage.Ready(ready)
}
