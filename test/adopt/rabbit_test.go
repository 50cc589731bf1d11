package adopt_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/rabbitmq"
	"github.com/postrider/postrider/broker/route"
	"github.com/postrider/postrider/internal/need"
)

var queues atomic.Int64

// queue is a separate queue on the real server.
type queue struct {
	t    *testing.T
	name string
	url  string
	ch   *amqp.Channel
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	q := &queue{t: t, url: need.Env(t, "POSTRIDER_TEST_RABBITMQ", "rabbitmq")}
	conn, err := amqp.Dial(q.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if q.ch, err = conn.Channel(); err != nil {
		t.Fatal(err)
	}
	q.name = fmt.Sprintf("adopt-%d-%d", time.Now().UnixNano(), queues.Add(1))
	if _, err := q.ch.QueueDeclare(q.name, true, false, false, false, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = q.ch.QueueDelete(q.name, false, false, false) })
	return q
}

// nowhere is a message type whose queue cannot exist, because its name is too long. Messages to a
// queue that is only missing would wait.
const nowhere = "nowhere"

var noQueue = strings.Repeat(nowhere, 40)

// publisher returns a publisher to the queue.
func (q *queue) publisher() postrider.Publisher {
	q.t.Helper()
	out, err := rabbitmq.NewPublisher(rabbitmq.Config{URL: q.url, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		q.t.Fatal(err)
	}
	table, err := route.NewTable([]route.Rule{
		{Match: route.Match{Types: []string{nowhere}}, Destination: "rabbit", Name: noQueue},
		{Destination: "rabbit", Name: q.name},
	})
	if err != nil {
		q.t.Fatal(err)
	}
	r, err := route.NewRouter(table, map[string]postrider.Publisher{"rabbit": out}, route.Config{})
	if err != nil {
		q.t.Fatal(err)
	}
	q.t.Cleanup(func() { _ = r.Close() })
	return r
}

// arrival is a message received from the queue.
type arrival struct {
	id      string
	headers amqp.Table
	N       int    `json:"n"`
	Of      string `json:"of"`
}

// take empties the queue.
func (q *queue) take() []arrival {
	q.t.Helper()
	var list []arrival
	for {
		m, ok, err := q.ch.Get(q.name, true)
		if err != nil {
			q.t.Fatal(err)
		}
		if !ok {
			return list
		}
		a := arrival{id: m.MessageId, headers: m.Headers}
		if err := json.Unmarshal(m.Body, &a); err != nil {
			q.t.Fatalf("%v: %s", err, m.Body)
		}
		list = append(list, a)
	}
}

// length returns the number of messages in the queue.
func (q *queue) length() int {
	q.t.Helper()
	state, err := q.ch.QueueDeclarePassive(q.name, true, false, false, false, nil)
	if err != nil {
		q.t.Fatal(err)
	}
	return state.Messages
}
