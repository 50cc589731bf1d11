package tour

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
)

// alchemists is the number of applicants for the programme that has no fee.
const alchemists = 5

// consumer is the consumer whose handler fails for them.
const consumer = "create_payment"

// DeadLetter is a mistake that no retry corrects: a programme has no fee. An operator finds it,
// corrects it, and retries the dead letters.
var DeadLetter = Incident{Before: applyForAlchemy, Happen: deadLetter}

func applyForAlchemy(ctx context.Context, t *Tour) error {
	if _, err := t.db.Exec(ctx, `DELETE FROM admissions.fees WHERE programme = 'alchemy'`); err != nil {
		return err
	}
	t.say("There is a programme called alchemy, and nobody has set a fee for it. %d people apply for it.", alchemists)
	t.crowd.Apply(ctx, "alchemy", alchemists)
	return nil
}

// listed is an element of the output of "postrider dead ls --json".
type listed struct {
	ID, Error string
}

func deadLetter(ctx context.Context, t *Tour) error {
	var deadLetters []listed
	patient, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	err := stage.Until(patient, func() error {
		said, err := t.stage.Command(ctx, t.stage.Postrider, "dead", "ls", "--consumer", consumer, "--status", "dead", "--json")
		if err != nil {
			return err
		}
		if err := json.Unmarshal([]byte(said), &deadLetters); err != nil {
			return fmt.Errorf("%w: %s", err, said)
		}
		if len(deadLetters) < alchemists {
			return fmt.Errorf("%d of %d dead letters", len(deadLetters), alchemists)
		}
		return nil
	})
	if err != nil {
		return err
	}
	t.say("The worker refuses to make a payment for them, and no attempt would change that: dead letters. Everybody else goes on.")
	t.show(ctx, "dead", "ls", "--consumer", consumer)
	t.say("The operator looks at one of them:")
	t.show(ctx, "dead", "show", deadLetters[0].ID)
	t.say("The operator sets the fee, as the error says: INSERT INTO admissions.fees VALUES ('alchemy', 12000)")
	if _, err := t.db.Exec(ctx, `INSERT INTO admissions.fees (programme, cents) VALUES ('alchemy', 12000)`); err != nil {
		return err
	}
	t.say("And sends all of them again:")
	t.show(ctx, "dead", "replay", "--all", "--consumer", consumer, "--reason", "fee of alchemy is set", "--yes")
	return nil
}
