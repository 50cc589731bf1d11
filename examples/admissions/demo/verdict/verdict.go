// Package verdict checks whether every applicant got what was promised: nothing lost, nothing
// doubled, and one mail each.
package verdict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Facts is what happened to the applicants of one run, according to the service's database, the
// payment provider's books, and the mailbox.
type Facts struct {
	Applications []Application
	Payments     []Payment
	Mails        []Mail
}

// Application is a row of the service's database.
type Application struct {
	ID, Email, Status string
}

// Payment is a row of the payment provider's books.
type Payment struct {
	ID, Application, Status string
}

// Mail is a mail that the mail server accepted.
type Mail struct {
	To, MessageID string
}

// Promise is what an applicant was told: the response 202 with the ID of the application.
type Promise struct {
	Email, Application string
}

// Verdict lists the addresses of applicants for whom something went wrong, each with a few words.
type Verdict struct {
	Promised int      // applicants whose application was accepted
	Lost     []string // accepted, but missing, not completed, not paid, or not mailed
	Doubled  []string // two applications, payments or mails for one applicant
}

// Clean reports whether nothing went wrong.
func (v Verdict) Clean() bool { return len(v.Lost)+len(v.Doubled) == 0 }

// String formats the verdict for people.
func (v Verdict) String() string {
	if v.Clean() {
		return fmt.Sprintf("%d applications: %d completed, %d paid once, %d mailed once; none lost, none doubled",
			v.Promised, v.Promised, v.Promised, v.Promised)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d applications: %d lost, %d doubled", v.Promised, len(v.Lost), len(v.Doubled))
	for _, lines := range [][]string{v.Lost, v.Doubled} {
		for _, line := range lines[:min(len(lines), 10)] { // ten are enough
			b.WriteString("\n  " + line)
		}
	}
	return b.String()
}

// Check compares the promises with what happened.
func Check(promises []Promise, facts Facts) Verdict {
	v := Verdict{Promised: len(promises)}
	applications := group(facts.Applications, func(a Application) string { return a.Email })
	payments := group(facts.Payments, func(p Payment) string { return p.Application })
	mails := group(facts.Mails, func(m Mail) string { return m.To })
	promised := make(map[string]bool)
	for _, p := range promises {
		if promised[p.Email] {
			v.Doubled = append(v.Doubled, p.Email+": was promised two applications")
		}
		promised[p.Email] = true
		v.application(p, applications[p.Email])
		v.payment(p, payments[p.Application])
		v.mail(p, mails[p.Email])
	}
	for _, strangers := range []struct {
		what string
		of   []string
	}{
		{"has an application that nobody was told of", slices.Collect(maps.Keys(applications))},
		{"has a mail without an application", slices.Collect(maps.Keys(mails))},
	} {
		slices.Sort(strangers.of)
		for _, email := range strangers.of {
			if !promised[email] {
				v.Doubled = append(v.Doubled, email+": "+strangers.what)
			}
		}
	}
	return v
}

func (v *Verdict) application(p Promise, rows []Application) {
	switch {
	case len(rows) > 1:
		v.Doubled = append(v.Doubled, fmt.Sprintf("%s: %d applications", p.Email, len(rows)))
	case len(rows) == 0 || rows[0].ID != p.Application:
		v.Lost = append(v.Lost, fmt.Sprintf("%s: application %s is not there", p.Email, p.Application))
	case rows[0].Status != "completed":
		v.Lost = append(v.Lost, fmt.Sprintf("%s: application %s is %s", p.Email, p.Application, rows[0].Status))
	}
}

func (v *Verdict) payment(p Promise, rows []Payment) {
	switch {
	case len(rows) > 1:
		v.Doubled = append(v.Doubled, fmt.Sprintf("%s: %d payments", p.Email, len(rows)))
	case len(rows) == 0:
		v.Lost = append(v.Lost, p.Email+": no payment")
	case rows[0].Status != "succeeded":
		v.Lost = append(v.Lost, fmt.Sprintf("%s: payment %s is %s", p.Email, rows[0].ID, rows[0].Status))
	}
}

func (v *Verdict) mail(p Promise, mails []Mail) {
	switch {
	case len(mails) > 1:
		v.Doubled = append(v.Doubled, fmt.Sprintf("%s: %d mails", p.Email, len(mails)))
	case len(mails) == 0:
		v.Lost = append(v.Lost, p.Email+": no mail")
	}
}

func group[T any](all []T, key func(T) string) map[string][]T {
	groups := make(map[string][]T)
	for _, one := range all {
		groups[key(one)] = append(groups[key(one)], one)
	}
	return groups
}
