package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/admin/console/redact"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// editing is the result of an edit, or of its dry run.
type editing struct {
	ID      postrider.ID `json:"id"`
	Feed    string       `json:"feed"`
	Done    bool         `json:"done"`
	Changes []string     `json:"changes"` // for people
}

// edits holds the flags with the changes.
type edits struct {
	payload, typ, topic string
	headers             []string
}

func (a *app) deadEditCommand() *cobra.Command {
	var c change
	var e edits
	var feed string
	cmd := &cobra.Command{
		Use:   "edit ID",
		Short: "Change a dead or parked message, and send it",
		Long: "Changes a message that is dead or parked, and sends it with its old ID. The audit log keeps the old content. Without a\n" +
			"flag that says what to change it opens $VISUAL or $EDITOR on the payload, which the audit log records too.\n\n" +
			"--json prints an object with: id, feed, done, changes.",
		Example: "  postrider dead edit 01890a5d-ac96-774b-bcce-b302099a8057\n" +
			"  postrider dead edit 01890a5d-ac96-774b-bcce-b302099a8057 --payload fixed.json --reason 'missing field' --yes\n" +
			"  postrider dead edit 01890a5d-ac96-774b-bcce-b302099a8057 --topic orders --header retry=1 --dry-run",
		Args: named("ID"),
		RunE: func(cmd *cobra.Command, args []string) error {
			flags := cmd.Flags()
			byHand := !flags.Changed("payload") && !flags.Changed("type") && !flags.Changed("topic") && !flags.Changed("header")
			if byHand && !a.asks {
				return usagef("what is to change? Add --payload, --type, --topic or --header")
			}
			return a.onAdmin(func(ctx context.Context, d operator, args []string) error {
				old, err := a.findDead(ctx, d, feed, args[0])
				if err != nil {
					return err
				}
				edited := old.Message
				if byHand {
					if err = d.Reveal(ctx, c.by(), old.Feed, old.ID); err == nil {
						edited.Payload, err = a.editByHand(ctx, &old.Message)
					}
				} else {
					err = a.applyEdits(e, flags.Changed, &edited)
				}
				if err != nil {
					return err
				}
				return a.edit(ctx, d, c, old, edited)
			})(cmd, args)
		},
	}
	addWhose(cmd, &feed, "")
	cmd.Flags().StringVar(&e.payload, "payload", "", "file with the new payload; -: the standard input")
	cmd.Flags().StringVar(&e.typ, "type", "", "new type")
	cmd.Flags().StringVar(&e.topic, "topic", "", "new topic")
	cmd.Flags().StringArrayVar(&e.headers, "header", nil, "name=value of a header; name= removes it; may be repeated")
	c.addFlags(cmd)
	return cmd
}

// findDead returns the only message with the ID that can be edited.
func (a *app) findDead(ctx context.Context, d operator, feed, arg string) (*feeds.Deferred, error) {
	ids, err := parseIDs([]string{arg})
	if err != nil {
		return nil, err
	}
	found, err := d.List(ctx, admin.Filter{Feed: feed, ID: ids[0], Statuses: deadStatuses}, nil, pageSize)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, hintedError{
			wordedError{admin.ErrNoMessage, fmt.Sprintf("message %s is neither dead nor parked", ids[0])}, "for the list: " + a.next("dead ls"),
		}
	case len(found) == 1 && found[0].Bare:
		return nil, a.noContent(&found[0])
	case len(found) > 1:
		names := make([]string, len(found))
		for i := range found {
			names[i] = flagFor(found[i].Feed)
		}
		return nil, hintedError{usagef("which feed's?"), "add one of: " + strings.Join(names, ", ")}
	}
	return &found[0], nil
}

func (a *app) applyEdits(e edits, changed func(flag string) bool, m *postrider.Message) error {
	if changed("type") {
		m.Type = e.typ
	}
	if changed("topic") {
		m.Topic = e.topic
	}
	m.Headers = maps.Clone(m.Headers)
	if m.Headers == nil {
		m.Headers = make(map[string]string)
	}
	for _, h := range e.headers {
		name, value, ok := strings.Cut(h, "=")
		switch {
		case !ok || name == "":
			return usagef("--header %q: want name=value", h)
		case value == "":
			delete(m.Headers, name)
		default:
			m.Headers[name] = value
		}
	}
	var err error
	switch {
	case e.payload == "-":
		m.Payload, err = io.ReadAll(io.LimitReader(a.in, postrider.MaxPayload+1))
	case changed("payload"):
		m.Payload, err = os.ReadFile(e.payload)
	}
	if err != nil {
		return usagef("--payload: %w", err)
	}
	return nil
}

func (a *app) edit(ctx context.Context, d operator, c change, old *feeds.Deferred, edited postrider.Message) error {
	if err := edited.Validate(); err != nil {
		return usageError{err}
	}
	if strings.Contains(edited.ContentType, "json") && !json.Valid(edited.Payload) {
		return usagef("the payload is not JSON, but its content type is %s", edited.ContentType)
	}
	plan := editing{ID: old.ID, Feed: old.Feed, Changes: differences(&old.Message, &edited)}
	if len(plan.Changes) == 0 {
		return errDeclined
	}
	if !c.dryRun {
		question := fmt.Sprintf("Change message %s (%s), and send it?", old.ID, strings.Join(plan.Changes, "; "))
		if err := a.confirm(c.danger, question); err != nil {
			return err
		}
		if err := d.Edit(ctx, c.by(), old.Feed, old.ID, edited); err != nil {
			return err
		}
		plan.Done = true
	}
	if a.asJSON {
		return a.json(plan)
	}
	verb := "would change"
	if plan.Done {
		verb = "changed, to be sent"
	}
	_, err := fmt.Fprintf(a.out, "%s: %s: %s\n", plan.ID, verb, strings.Join(plan.Changes, "; "))
	return err
}

// differences describes the changes.
func differences(old, edited *postrider.Message) []string {
	changes := []string{}
	if old.Type != edited.Type {
		changes = append(changes, fmt.Sprintf("type %q to %q", old.Type, edited.Type))
	}
	if old.Topic != edited.Topic {
		changes = append(changes, fmt.Sprintf("topic %q to %q", old.Topic, edited.Topic))
	}
	if !maps.Equal(old.Headers, edited.Headers) {
		var masked *redact.Rules
		changes = append(changes, fmt.Sprintf("headers %q to %q", masked.Headers(old.Headers, true), masked.Headers(edited.Headers, true)))
	}
	if !bytes.Equal(old.Payload, edited.Payload) {
		changes = append(changes, fmt.Sprintf("payload of %s to %d", phrase.Quantity(len(old.Payload), "byte", "bytes"), len(edited.Payload)))
	}
	return changes
}
