package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/redact"
)

// revealHelp is the help of the flag --reveal.
const revealHelp = "Values that console.redact of the configuration file lists are hidden, and so\n" +
	"are headers with secret-looking names: --reveal shows them, and the audit log records it.\n\n"

// reveal holds the flags of a command that shows the content of messages.
type reveal struct {
	change
	all   bool
	rules *redact.Rules // nil with --reveal
}

func (r *reveal) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.all, "reveal", false, "also show values hidden by console.redact or the names of headers; the audit log records it")
	r.addReason(cmd)
}

// begin loads the redaction rules.
func (r *reveal) begin(a *app) (err error) {
	if !r.all {
		r.rules, err = a.redaction()
	}
	return err
}

// show returns a message with its content, redacted. With --reveal it records the access first.
func (r *reveal) show(ctx context.Context, d operator, row listed, m *postrider.Message) (shown, error) {
	if r.all {
		if err := d.Reveal(ctx, r.by(), row.Feed, m.ID); err != nil {
			return shown{}, err
		}
	}
	return shown{row, contentOf(m, r.rules)}, nil
}

// redaction returns the rules of the configuration file, or none if there is no file.
func (a *app) redaction() (*redact.Rules, error) {
	path, said := configPath("")
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) && !said {
		return redact.New(nil)
	}
	f, err := a.useConfig(path, false)
	if err != nil {
		return nil, err // do not show anything without the rules
	}
	return redact.New(f.Console.Redact)
}

// put sets headers and payload. Without rules it does not redact them.
func (c *content) put(m *postrider.Message, rules *redact.Rules) {
	c.Headers, c.Size = m.Headers, len(m.Payload)
	payload := m.Payload
	if rules != nil {
		c.Headers = rules.Headers(m.Headers, true)
		if !rules.Empty() {
			view := rules.Payload(m.ContentType, m.Payload, true)
			payload, c.Redacted = []byte(view.Text), view.Redacted
		}
	}
	switch {
	case json.Valid(payload):
		c.Payload = payload
	case utf8.Valid(payload):
		c.PayloadText = string(payload)
	default:
		c.PayloadBytes = payload
	}
}

// redactRecords applies the rules to audit records. A payload that is not affected stays complete:
// the record may be its only copy.
func redactRecords(all []admin.Entry, rules *redact.Rules) {
	for i := range all {
		for _, kept := range []*map[string]any{&all[i].Before, &all[i].After} {
			whole, there := (*kept)["payload"]
			*kept = rules.Recorded(*kept, true)
			if there && rules.Empty() {
				(*kept)["payload"] = whole
			}
		}
	}
}

// redactedJSON applies the rules to JSON. A value that is too long to be shown becomes a string.
func redactedJSON(raw json.RawMessage, rules *redact.Rules) json.RawMessage {
	if rules.Empty() || len(raw) == 0 {
		return raw
	}
	view := rules.Payload("application/json", raw, true)
	if json.Valid([]byte(view.Text)) {
		return json.RawMessage(view.Text)
	}
	text, _ := json.Marshal(view.Text) // strings always marshal
	return text
}
