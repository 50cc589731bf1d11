package sqs

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/sqs/internal/service"
	"github.com/postrider/postrider/retry"
)

const (
	requestTimeout = 10 * time.Second       // of a request, in addition to its intended wait
	endGrace       = time.Second            // for a request in flight at the end, in addition to its intended wait
	emptyPause     = 100 * time.Millisecond // after a request that returned nothing without waiting
)

var _ postrider.Consumer = (*Consumer)(nil)

// Consumer receives the messages of a queue.
type Consumer struct {
	intake.Counters

	cfg    Config
	aws    aws.Config
	coder  *codec.Codec
	dead   intake.DeadLetters
	queues *service.Queues
}

// NewConsumer returns a consumer. It does not connect. Errors concern the configuration.
func NewConsumer(cfg Config) (*Consumer, error) {
	coder, err := cfg.prepare(true)
	if err != nil {
		return nil, err
	}
	loaded, err := cfg.load()
	if err != nil {
		return nil, err
	}
	dead, err := intake.OpenDeadLetters(cfg.DeadLetter, cfg.Name, cfg, NewPublisher)
	if err != nil {
		return nil, prefix(err)
	}
	return &Consumer{cfg: cfg, aws: loaded, coder: coder, dead: dead, queues: service.NewQueues(loaded, cfg.Endpoint, cfg.Account)}, nil
}

// Close closes the connections.
func (c *Consumer) Close() error {
	closeIdle(&c.aws)
	return c.dead.Close()
}

// Consume hands messages to handle until ctx ends. If it cannot receive, it logs the reason and
// retries.
func (c *Consumer) Consume(ctx context.Context, handle postrider.Handler) error {
	in := intake.Open(ctx, handle, intake.Config{
		Limit: c.cfg.InFlight, Waiting: c.cfg.MaxWaiting, Retry: retry.Policy{Attempts: c.cfg.Attempts}, DeadLetters: c.dead,
		Counters: &c.Counters, Logger: c.cfg.Logger,
	})
	r := &receiver{Consumer: c, in: in, attempt: rand.Text(), held: newHeld(c.queues.Client, c.cfg.VisibilityTimeout)}
	keep, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		r.held.keep(keep)
	}()
	intake.Persist(ctx, c.cfg.Logger, "sqs queue "+c.cfg.Name, r.receive)
	in.Wait()
	end()
	<-kept
	r.held.leave(context.WithoutCancel(ctx))
	return nil
}

// receiver is the state of one call of Consume.
type receiver struct {
	*Consumer
	in      *intake.Intake
	held    *held
	attempt string // identifies a request to a FIFO queue: a repeated request gets the messages of a lost answer
}

// receive takes messages until a request fails or ctx ends. It takes no more than can be handled,
// because other consumers may be idle.
func (r *receiver) receive(ctx context.Context, working func()) error {
	address, err := r.queues.Locate(ctx, r.cfg.Name)
	if err != nil {
		if service.IsMissing(err) {
			r.cfg.Logger.Error("sqs: queue does not exist", "queue", r.cfg.Name, "create", r.queues.Missing(r.cfg.Name))
		}
		return err
	}
	r.held.use(address)
	for ctx.Err() == nil {
		free := r.in.Free()
		if free == 0 {
			break
		}
		began := time.Now()
		msgs, err := r.poll(ctx, address, min(free, service.MostEntries))
		if err != nil {
			return err
		}
		working()
		for i := range msgs {
			if r.held.take(&msgs[i]) {
				id := *msgs[i].MessageId
				// A message that is not accepted, because ctx has ended, is given back at the end.
				//nolint:contextcheck // the intake has a context of its own
				_ = r.in.Accept(intake.Delivery{Message: r.decode(&msgs[i]), Done: func() { r.held.done(id) }})
			}
		}
		if len(msgs) == 0 && time.Since(began) < emptyPause {
			select {
			case <-time.After(emptyPause):
			case <-ctx.Done():
			}
		}
	}
	return ctx.Err()
}

// poll requests messages, waiting for up to PollWait. The end of ctx does not cancel the request:
// its messages would stay hidden, and block their groups, until their visibility timeout.
func (r *receiver) poll(ctx context.Context, address string, most int) ([]types.Message, error) {
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.PollWait+requestTimeout)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(r.cfg.PollWait+endGrace, cancel) })()
	in := &sqs.ReceiveMessageInput{
		QueueUrl: &address, MaxNumberOfMessages: int32(most),
		WaitTimeSeconds: int32(r.cfg.PollWait / time.Second), VisibilityTimeout: seconds(r.cfg.VisibilityTimeout),
		MessageAttributeNames:       []string{"All"},
		MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	}
	if service.IsFIFO(r.cfg.Name) {
		in.ReceiveRequestAttemptId = &r.attempt
	}
	out, err := r.queues.Client.ReceiveMessage(request, in)
	if err != nil {
		return nil, err
	}
	r.attempt = rand.Text()
	return out.Messages, nil
}

// seconds rounds up, because SQS has no fractions of seconds and 0 means immediately.
func seconds(d time.Duration) int32 { return int32((d + time.Second - 1) / time.Second) }

// decode reads a message. If it claims to be a CloudEvent but is invalid, it is handed over
// undecoded, with its attributes as headers.
func (c *Consumer) decode(m *types.Message) postrider.Message {
	packet, err := service.Received(c.cfg.Name, m)
	message, wrong := c.coder.Decode(&packet)
	if err == nil {
		err = wrong
	}
	if err != nil {
		c.cfg.Logger.Error("sqs: message cannot be decoded, handing it over undecoded", "queue", c.cfg.Name,
			"message", aws.ToString(m.MessageId), "err", err)
	}
	return message
}
