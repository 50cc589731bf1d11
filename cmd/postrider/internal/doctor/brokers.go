package doctor

import (
	"context"
	"crypto/x509"
	"log/slog"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
)

// examine checks what confirmations of a destination guarantee.
func (d Destination) examine(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, standard.check)
	defer cancel()
	found := d.ask(ctx)
	for i := range found {
		found[i].Check, found[i].Subject = "broker", d.Name
	}
	return found
}

func (d Destination) ask(ctx context.Context) []Finding {
	place := "destinations." + d.Name
	var certificates ending
	pub, err := d.open(certificates.see)
	if err != nil {
		return []Finding{{Severity: Problem, Finding: "it cannot be opened: " + oneLine(err), Why: "Relays that need it do not start.",
			Fix: "postrider config validate --open, and correct " + place}}
	}
	defer pub.Close() //nolint:errcheck // nothing was sent
	inspector, ok := pub.(broker.Inspector)
	if !ok {
		return []Finding{{Severity: OK, Finding: "this broker has no checks"}}
	}
	said, err := inspector.Inspect(ctx, d.Names)
	var found []Finding
	for _, w := range said.Warnings {
		found = append(found, Finding{Severity: Warning, Finding: w.Danger,
			Why: "A message that counts as confirmed can be lost, or is never accepted.", Fix: w.Remedy})
	}
	if err != nil {
		found = append(found, Finding{Severity: Problem, Finding: "the broker does not answer: " + oneLine(err),
			Why: "Relays keep trying, and deliver nothing meanwhile.",
			Fix: "check url and credentials of " + place + ", and the network from here"})
	}
	found = append(found, certificates.findings()...)
	if len(found) == 0 {
		return []Finding{{Severity: OK, Finding: said.Confirmed}}
	}
	return found
}

func (d Destination) open(see func(*x509.Certificate)) (postrider.Publisher, error) {
	driver, err := d.Config.Driver()
	if err != nil {
		return nil, err
	}
	return driver.Open(&broker.Settings{
		URL: d.Config.URL, Values: d.Config.Options, Logger: slog.New(slog.DiscardHandler), Certificate: see,
	})
}
