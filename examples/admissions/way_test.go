package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/broker/webhook/signature"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/store/feeds"
)

// TestWork covers the workers.
func TestWork(t *testing.T) {
	o := openOffice(t)
	o.work()
	for name, test := range map[string]func(*office){
		"paid": paid, "declined": declined, "last seat": lastSeat, "missing fee": missingFee, "webhook": webhookTwice,
		"three attempts": threeAttempts,
	} {
		t.Run(name, func(t *testing.T) { test(o.in(t)) })
	}
}

// paid goes from the form to the mail, which is sent once although the pay desk sends everything
// twice.
func paid(o *office) {
	taken := o.seats("computing")
	id := o.admit("computing")
	o.await(id, "awaiting_payment", 75)
	o.decide(id, "pay")
	o.await(id, "completed", 100)
	o.eventually(func() string {
		if n := o.count("SELECT count(*) FROM paydesk.webhooks"); n > 0 {
			return "a webhook was not sent for the second time"
		}
		return ""
	})
	mails := o.mailbox.about(id)
	if len(mails) != 1 || !strings.Contains(mails[0], "To: \"Ann Example\" <ann@example.com>") || !strings.Contains(mails[0], "@admissions>") {
		o.t.Errorf("mails: %q", mails)
	}
	if n := o.seats("computing") - taken; n != 1 {
		o.t.Errorf("%d seats were taken, want 1", n)
	}
}

// declined checks that the saga undoes its steps and that no mail is sent.
func declined(o *office) {
	taken := o.seats("computing")
	id := o.admit("computing")
	o.await(id, "awaiting_payment", 75)
	o.decide(id, "decline")
	o.await(id, "declined", 75)
	if n := o.seats("computing") - taken; n != 0 {
		o.t.Errorf("%d seats were kept, want none", n)
	}
	if mails := o.mailbox.about(id); len(mails) > 0 {
		o.t.Errorf("mails: %q", mails)
	}
}

// lastSeat checks that of three concurrent applicants for two seats, one is declined and owes
// nothing.
func lastSeat(o *office) {
	for range 3 {
		o.admit("medicine")
	}
	o.eventually(func() string {
		const of = "SELECT count(*) FROM admissions.applications WHERE programme = 'medicine' AND "
		due := o.count(of + "payment_at IS NOT NULL AND declined_at IS NULL")
		declined := o.count(of + "payment_at IS NULL AND declined_for LIKE '%no seat%'")
		if due == 2 && declined == 1 {
			return ""
		}
		return fmt.Sprintf("%d may pay and %d are declined, want 2 and 1", due, declined)
	})
}

// missingFee checks that a job that fails permanently becomes a dead letter, and succeeds after an
// operator has corrected the cause and retried it.
func missingFee(o *office) {
	ctx := o.t.Context()
	operator := o.db.Admin()
	dead := admin.Filter{Feed: inbox.Feed(jobPayment), Statuses: []feeds.Status{feeds.StatusDead}}
	id := o.admit("alchemy")
	o.eventually(func() string {
		deadLetters, err := operator.List(ctx, dead, nil, 10)
		must(o.t, err)
		if len(deadLetters) == 1 && deadLetters[0].LastError == "no fee is set for programme alchemy" {
			return ""
		}
		return fmt.Sprintf("dead letters: %+v", deadLetters)
	})
	o.await(id, "verified", 50)

	_, err := o.pool.Exec(ctx, "INSERT INTO admissions.fees (programme, cents) VALUES ('alchemy', 4000)")
	must(o.t, err)
	n, err := operator.Act(ctx, admin.By{Who: "ann", Why: "fee set"}, admin.Retry, dead, 10)
	if n != 1 || err != nil {
		o.t.Fatal(n, err)
	}
	o.await(id, "awaiting_payment", 75)
}

// threeAttempts checks that a failing job is retried after 2 s and 4 s, and then is a dead letter
// until an operator retries it.
func threeAttempts(o *office) {
	ctx := o.t.Context()
	operator := o.db.Admin()
	dead := admin.Filter{Feed: inbox.Feed(jobMail), Statuses: []feeds.Status{feeds.StatusDead}}
	id := o.admit("law")
	o.mailbox.refuse(id)
	o.await(id, "awaiting_payment", 75)
	o.decide(id, "pay")
	o.eventually(func() string {
		deadLetters, err := operator.List(ctx, dead, nil, 10)
		must(o.t, err)
		if len(deadLetters) == 1 && deadLetters[0].Attempts == 3 && strings.Contains(deadLetters[0].LastError, "not now") {
			return ""
		}
		return fmt.Sprintf("dead letters: %+v", deadLetters)
	})
	o.await(id, "paid", 75)

	tries := o.mailbox.refuse("")
	if len(tries) != 3 {
		o.t.Fatalf("%d attempts, want 3", len(tries))
	}
	for i, want := range []time.Duration{2 * time.Second, 4 * time.Second} {
		pause := tries[i+1].Sub(tries[i])
		o.t.Logf("attempt %d came after %v", i+2, pause)
		if pause < want-100*time.Millisecond || pause >= 2*want {
			o.t.Errorf("attempt %d came %v after the one before it, want %v", i+2, pause, want)
		}
	}
	n, err := operator.Act(ctx, admin.By{Who: "ann", Why: "mail server mended"}, admin.Retry, dead, 10)
	if n != 1 || err != nil {
		o.t.Fatal(n, err)
	}
	o.await(id, "completed", 100)
}

// webhookTwice checks that a webhook without a signature has no effect, and that a repeated one has
// no second effect.
func webhookTwice(o *office) {
	id := o.admit("law")
	o.await(id, "awaiting_payment", 75)
	body := `{"type":"payment.succeeded","payment":"pay_1","application":"` + id + `"}`
	if answer, _ := o.send("/webhooks/payments", strings.NewReader(body)); answer.StatusCode != http.StatusUnauthorized {
		o.t.Errorf("without a signature: %s", answer.Status)
	}
	signer, err := signature.NewSigner(o.set.paymentSecret)
	must(o.t, err)
	for range 3 {
		header := http.Header{}
		signer.Sign(header, "msg_1", time.Now(), []byte(body))
		var fields []string
		for name := range header {
			fields = append(fields, name, header.Get(name))
		}
		if answer, text := o.send("/webhooks/payments", strings.NewReader(body), fields...); answer.StatusCode != http.StatusNoContent {
			o.t.Errorf("with a signature: %s: %s", answer.Status, text)
		}
	}
	o.await(id, "completed", 100)
	if n := o.count("SELECT count(*) FROM postrider.messages WHERE type = 'payment_completed' AND aggregate_id = $1", id); n != 1 {
		o.t.Errorf("%d messages payment_completed, want 1", n)
	}
}

// seats returns the number of taken seats.
func (o *office) seats(programme string) int {
	o.t.Helper()
	return o.count("SELECT taken FROM admissions.programmes WHERE id = $1", programme)
}
