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

// revealHelp is part of the help of commands with the flags.
const revealHelp = "What console.redact of the configuration file names is not shown, nor are\n" +
	"headers whose names say that they are secret: --reveal shows them, and is recorded.\n\n"

// reveal holds the flags of a command that shows what messages carry.
type reveal struct {
	change
	all   bool
	rules *redact.Rules // what is hidden; nil with all
}

func (r *reveal) addFlags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&r.all, "reveal", false, "show also what console.redact and names of headers say is secret; it is recorded")
	r.addReason(cmd)
}

// begin finds out what is hidden.
func (r *reveal) begin(a *app) (err error) {
	if !r.all {
		r.rules, err = a.redaction()
	}
	return err
}

// show returns a message with what it carries, as far as it may be shown. What would show more is recorded first.
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
		return nil, err // what is not to be shown is not known
	}
	return redact.New(f.Console.Redact)
}

// put adds headers and payload. Without rules they are as they are stored.
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

// redactRecords hides in records what the rules hide. A payload of which nothing is hidden stays whole: it may be the only copy.
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

// redactedJSON is JSON without what the rules hide. What is too long to be shown becomes a string.
func redactedJSON(raw json.RawMessage, rules *redact.Rules) json.RawMessage {
	if rules.Empty() || len(raw) == 0 {
		return raw
	}
	view := rules.Payload("application/json", raw, true)
	if json.Valid([]byte(view.Text)) {
		return json.RawMessage(view.Text)
	}
	text, _ := json.Marshal(view.Text) // text always can be
	return text
}
