// Package foreign publishes messages directly to the destinations, as services do that do not use
// Postrider: without IDs, with IDs of ours under another source, with bodies of their own, and as
// malformed events. A header marks each with its number.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/work/producer"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// message is what a sender hands to its broker. Attributes are those of a CloudEvent, without the
// prefix that the protocol demands.
type message struct {
	mark       string
	id         string // for protocols that demand one
	key        string
	attributes map[string]string
	structured bool // the body is the event
	body       []byte
}

const structuredType = "application/cloudevents+json"

// sender publishes a message, and returns nil once the destination has confirmed it.
type sender interface {
	send(ctx context.Context, m message) error
	close()
}

func open(plan work.Plan, destination string) (sender, error) {
	switch destination {
	case world.Kafka:
		return openKafka(plan.Brokers[destination])
	case world.NATS:
		return openNATS(plan.Brokers[destination])
	case world.RabbitMQ:
		return openRabbitMQ(plan.Brokers[destination])
	case world.Redis:
		return openRedis(plan.Brokers[destination])
	default:
		return openHTTP("http://" + plan.Receiver + "/hooks/" + world.HTTP)
	}
}

// forms are what is unusual about a message.
var forms = []struct {
	name  string
	shape func(m *message, ours string)
}{
	{"bare", func(m *message, _ string) { m.key = "" }},
	{"own body", func(m *message, _ string) { m.event("elsewhere.happened", m.id) }},
	{"our ID", func(m *message, ours string) { m.event("elsewhere.happened", ours) }},
	{"our ID, structured", func(m *message, ours string) { m.event("elsewhere.happened", ours); m.wrap() }},
	{"refused", func(m *message, _ string) { m.event(work.TypeForeign, m.id) }},
	{"malformed", func(m *message, _ string) {
		m.event("elsewhere.happened", m.id)
		m.attributes["time"] = "yesterday"
	}},
	{"no event", func(m *message, _ string) { m.structured, m.body = true, []byte(`{"specversion": "1.0", "id":`) }},
}

func (m *message) event(kind, id string) {
	m.attributes = map[string]string{"specversion": "1.0", "id": id, "source": "/elsewhere", "type": kind}
	if m.key != "" {
		m.attributes["partitionkey"] = m.key
	}
}

// wrap makes the body the whole event.
func (m *message) wrap() {
	m.id = m.attributes["id"]
	m.body = fmt.Appendf(nil, `{"specversion": "1.0", "id": %q, "source": "/elsewhere", "type": %q, "data": {"body": "not ours"}}`, m.id, m.attributes["type"])
	m.attributes, m.structured = nil, true
}

// Send publishes about n messages, and some of ours whose IDs have come from elsewhere before. What
// the destination does not confirm is not counted: nobody knows whether it has arrived.
func Send(ctx context.Context, pool *pgxpool.Pool, plan work.Plan, destination string, n int, log *slog.Logger) (sent int, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	to, err := open(plan, destination)
	if err != nil {
		return 0, err
	}
	defer to.close()
	var ours []string
	var errs []error
	for len(ours) < n && len(errs) < 3 {
		id := postrider.NewID().String()
		ours = append(ours, id)
		form := forms[rand.IntN(len(forms))]
		var number int64
		if err := pool.QueryRow(ctx, "SELECT nextval('campaign.foreign_numbers')").Scan(&number); err != nil {
			return sent, err
		}
		m := message{
			mark: strconv.FormatInt(number, 10), id: postrider.NewID().String(), key: work.Key(destination, rand.IntN(plan.Keys)),
			body: []byte(`{"body": "not ours"}`),
		}
		form.shape(&m, id)
		if err := to.send(ctx, m); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", form.name, err))
			continue
		}
		if _, err := pool.Exec(ctx, "INSERT INTO campaign.foreign VALUES ($1, $2, $3)", number, destination, form.name); err != nil {
			return sent, err
		}
		sent++
	}
	return sent, errors.Join(append(errs, producer.As(ctx, plan, destination, ours, log))...)
}
