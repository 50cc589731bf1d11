package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// draft holds the flags that describe a message.
type draft struct {
	aggregate, key, topic, routingKey, tenant string
	payload, contentType                      string
	headers                                   []string
	dedupKey, correlation                     string
	after                                     time.Duration
	priority                                  int
}

// enqueued is the result of the command, or of its dry run.
type enqueued struct {
	ID     postrider.ID `json:"id"`
	Key    string       `json:"key"`
	Done   bool         `json:"done"`
	Repeat bool         `json:"repeat"`
}

func (a *app) enqueueCommand() *cobra.Command {
	var d draft
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "enqueue TYPE",
		Short: "Enqueue one message in its own transaction",
		Long: "Writes a message to the log, from where relays deliver it like any other, and prints its ID. Applications enqueue messages\n" +
			"in their business transactions; this command is for experiments, and for messages that must be sent by hand.\n\n" +
			"--json prints an object with: id, key, done, repeat (the dedup key was used before: nothing was written).",
		Example: "  postrider enqueue order.placed --aggregate order/42 --payload '{\"total\": 7}'\n" +
			"  postrider enqueue order.placed --payload @order.json --header source=shop --after 10m\n" +
			"  jq -c .order request.json | postrider enqueue order.placed --aggregate order/42 --payload -",
		Args: named("TYPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := a.draftMessage(d, args[0], time.Now())
			if err != nil {
				return err
			}
			result := enqueued{ID: m.ID, Key: m.OrderKey()}
			if !dryRun {
				if result.Repeat, err = a.enqueueOne(cmd.Context(), m); err != nil {
					return err
				}
				result.Done = !result.Repeat
			}
			return a.reportEnqueued(result)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&d.aggregate, "aggregate", "", "business object of the message, as type/id; messages of one object stay in order")
	flags.StringVar(&d.key, "key", "", "ordering key; default: the aggregate")
	flags.StringVar(&d.payload, "payload", "", "content; @FILE: from a file; -: from the standard input")
	flags.StringVar(&d.contentType, "content-type", "", "content type of the payload; default: application/json, which is checked")
	flags.StringArrayVar(&d.headers, "header", nil, "name=value of a header; may be repeated")
	flags.StringVar(&d.topic, "topic", "", "topic, which routes can match")
	flags.StringVar(&d.routingKey, "routing-key", "", "routing key, for brokers that support one")
	flags.StringVar(&d.tenant, "tenant", "", "tenant of the message")
	flags.StringVar(&d.dedupKey, "dedup-key", "", "natural key of the fact; a message whose key was used within the last days is not written again")
	flags.StringVar(&d.correlation, "correlation-id", "", "correlation ID, common to the messages of one business process")
	flags.DurationVar(&d.after, "after", 0, "earliest delivery, from now")
	flags.IntVar(&d.priority, "priority", 0, "priority; larger numbers first")
	flags.BoolVar(&dryRun, "dry-run", false, "only say what would be done")
	return cmd
}

// draftMessage builds a message from the flags.
func (a *app) draftMessage(d draft, typ string, now time.Time) (postrider.Message, error) {
	var none postrider.Message
	kind, id, ok := strings.Cut(d.aggregate, "/")
	if d.aggregate != "" && (!ok || kind == "" || id == "") {
		return none, usagef("--aggregate is %q: want type/id", d.aggregate)
	}
	payload, err := a.readPayload(d.payload)
	if err != nil {
		return none, usagef("--payload: %w", err)
	}
	if d.contentType == "" {
		if len(payload) == 0 {
			payload = []byte("{}")
		}
		if !json.Valid(payload) {
			return none, hintedError{usagef("--payload is not JSON"), "for other content: add --content-type, such as text/plain"}
		}
	}
	m := postrider.Event(typ, postrider.Aggregate{Type: kind, ID: id}, payload)
	m.ContentType = cmp.Or(d.contentType, "application/json")
	m.Key, m.Topic, m.RoutingKey, m.TenantID = d.key, d.topic, d.routingKey, d.tenant
	m.DedupKey, m.CorrelationID, m.Priority = d.dedupKey, d.correlation, d.priority
	if d.after > 0 {
		m.DeliverAfter = now.Add(d.after)
	}
	if len(d.headers) > 0 {
		m.Headers = make(map[string]string, len(d.headers))
	}
	for _, h := range d.headers {
		name, value, ok := strings.Cut(h, "=")
		if !ok || name == "" {
			return none, usagef("--header %q: want name=value", h)
		}
		m.Headers[name] = value
	}
	if err := m.Validate(); err != nil {
		return none, usageError{err}
	}
	return m, nil
}

// readPayload reads at most one byte more than a message may hold, so that a longer payload is
// refused and not truncated.
func (a *app) readPayload(text string) ([]byte, error) {
	from := a.in
	name, isFile := strings.CutPrefix(text, "@")
	if isFile {
		file, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer func() { _ = file.Close() }()
		from = file
	} else if text != "-" {
		return []byte(text), nil
	}
	return io.ReadAll(io.LimitReader(from, postrider.MaxPayload+1))
}

// enqueueOne writes a message, and reports whether its dedup key was used before.
func (a *app) enqueueOne(ctx context.Context, m postrider.Message) (repeat bool, err error) {
	if a.db.isClassic() {
		return a.enqueueRow(ctx, m)
	}
	pool, err := a.db.open(ctx)
	if err != nil {
		return false, err
	}
	defer pool.Close()
	db, err := a.db.log(pool)
	if err != nil {
		return false, err
	}
	err = a.inTransaction(ctx, pool, func(tx pgx.Tx) error {
		repeats, err := db.Outbox().Offer(ctx, tx, m)
		repeat = len(repeats) > 0
		return err
	})
	return repeat, err
}

func (a *app) inTransaction(ctx context.Context, pool *pgxpool.Pool, f func(pgx.Tx) error) error {
	err := a.db.explain(pgx.BeginFunc(ctx, pool, f))
	if errors.Is(err, feeds.ErrSchema) && !errors.As(err, new(hintedError)) {
		return a.db.hintMigrate(err)
	}
	return err
}

func (a *app) reportEnqueued(r enqueued) error {
	if r.Repeat {
		a.notef("its dedup key was used before; nothing was written")
	}
	if a.asJSON {
		return a.json(r)
	}
	if !r.Done {
		if !r.Repeat {
			a.notef("would be enqueued, %s", orderText(r.Key))
		}
		return nil
	}
	_, err := fmt.Fprintln(a.out, r.ID)
	return err
}

func orderText(key string) string {
	if key == "" {
		return "in no order"
	}
	return "in the order of key " + phrase.ShellWord(key)
}
