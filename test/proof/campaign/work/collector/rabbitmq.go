package collector

import (
	"context"
	"errors"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider/test/proof/campaign/work"
)

const prefetch = 500

// readRabbitMQ empties a queue. Its entries have no positions, so they are counted. An entry that
// is redelivered because its acknowledgement was lost with the connection is recognized by its ID
// and the redelivered flag.
func readRabbitMQ(address string, take take) func(context.Context) error {
	count := int64(0)
	recent := newRecent(20 * prefetch)
	return func(ctx context.Context) error {
		conn, err := amqp.DialConfig(address, amqp.Config{Heartbeat: 5 * time.Second, Dial: amqp.DefaultDial(5 * time.Second)})
		if err != nil {
			return err
		}
		defer conn.Close()
		defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
		ch, err := conn.Channel()
		if err != nil {
			return err
		}
		if err := ch.Qos(prefetch, 0, false); err != nil {
			return err
		}
		deliveries, err := ch.Consume(work.Receipts, "", false, false, false, false, nil)
		if err != nil {
			return err
		}
		for d := range deliveries {
			if !d.Redelivered || !recent.has(d.MessageId) {
				count++
				e := entry{offset: count, id: d.MessageId, payload: d.Body}
				for name, value := range d.Headers {
					if text, ok := value.(string); ok {
						e.headers.Add(name, text)
					}
				}
				take(e)
				recent.add(d.MessageId)
			}
			if err := d.Ack(false); err != nil {
				return err
			}
		}
		return errors.New("the subscription has ended")
	}
}

// recent has the last IDs that were read.
type recent struct {
	ids   []string
	next  int
	times map[string]int // occurrences of each ID
}

func newRecent(size int) *recent { return &recent{ids: make([]string, size), times: map[string]int{}} }

func (r *recent) has(id string) bool { return r.times[id] > 0 }

func (r *recent) add(id string) {
	oldest := r.ids[r.next]
	if r.times[oldest]--; r.times[oldest] <= 0 {
		delete(r.times, oldest)
	}
	r.ids[r.next] = id
	r.next = (r.next + 1) % len(r.ids)
	r.times[id]++
}
