package sqs

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest"
	"github.com/postrider/postrider/broker/sqs/internal/service"
	"github.com/postrider/postrider/internal/need"
)

const account = "123456789012" // moto's account; ElasticMQ has none

var names atomic.Int64

func newName(suffix string) string {
	return fmt.Sprintf("test-%d-%d%s", os.Getpid(), names.Add(1), suffix)
}

// local returns credentials that local servers accept.
func local() *aws.Config {
	return &aws.Config{Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")}
}

func elasticmq(t testing.TB) string { return need.Env(t, "POSTRIDER_TEST_ELASTICMQ", "elasticmq") }
func moto(t testing.TB) string      { return need.Env(t, "POSTRIDER_TEST_MOTO", "moto") }

func open(t testing.TB, cfg Config) *Publisher {
	t.Helper()
	cfg.URL, cfg.AWS = cmp.Or(cfg.URL, "sqs://us-east-1"), cmp.Or(cfg.AWS, local())
	p, err := NewPublisher(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func subscribe(t testing.TB, cfg Config) *Consumer {
	t.Helper()
	cfg.URL, cfg.AWS = "sqs://us-east-1", local()
	cfg.PollWait = cmp.Or(cfg.PollWait, time.Millisecond) // no wait, so that Consume ends at once
	c, err := NewConsumer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// queue creates a queue that is deleted at the end of the test.
func queue(t testing.TB, endpoint, suffix string) string {
	t.Helper()
	name := newName(suffix)
	makeQueue(t, endpoint, name)
	return name
}

func makeQueue(t testing.TB, endpoint, name string) {
	t.Helper()
	p := open(t, Config{Endpoint: endpoint})
	if err := p.service.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		defer p.Close()
		ctx := context.WithoutCancel(t.Context())
		address, err := p.service.Locate(ctx, name)
		if err == nil {
			_, err = p.service.(*service.Queues).Client.DeleteQueue(ctx, &awssqs.DeleteQueueInput{QueueUrl: &address})
		}
		if err != nil {
			t.Errorf("deleting %s: %v", name, err)
		}
	})
}

// sendPlain sends bodies like a sender that does not use Postrider.
func sendPlain(t testing.TB, endpoint, name string, bodies ...string) {
	t.Helper()
	q := open(t, Config{Endpoint: endpoint}).service.(*service.Queues)
	address, err := q.Locate(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	in := &awssqs.SendMessageBatchInput{QueueUrl: &address}
	for i, body := range bodies {
		e := types.SendMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(i)), MessageBody: &body}
		if service.IsFIFO(name) {
			e.MessageGroupId, e.MessageDeduplicationId = aws.String(newName("")), aws.String(newName(""))
		}
		in.Entries = append(in.Entries, e)
	}
	out, err := q.Client.SendMessageBatch(t.Context(), in)
	if err != nil || len(out.Failed) > 0 {
		t.Fatalf("got %v, %v", out, err)
	}
}

func queueHarness(t *testing.T, suffix string) brokertest.Harness {
	server := elasticmq(t)
	f := front(server)
	consumer := func(t *testing.T, cfg Config) postrider.Consumer {
		cfg.Endpoint = server
		return subscribe(t, cfg)
	}
	return brokertest.Harness{
		Server: f.Listener.Addr().String(),
		Create: func(t *testing.T) string { return queue(t, server, suffix) },
		Publisher: func(t *testing.T, address string) postrider.Publisher {
			return openSecured(t, f, address, Config{})
		},
		Consumer: func(t *testing.T, name, _ string, limit int) postrider.Consumer {
			return consumer(t, Config{Name: name, InFlight: limit})
		},
		Burying: func(t *testing.T, name, _, dead string) postrider.Consumer {
			return consumer(t, Config{Name: name, Attempts: 2, DeadLetter: dead})
		},
		Member: func(t *testing.T, name, _ string, limit int) postrider.Consumer {
			return consumer(t, Config{Name: name, InFlight: limit, VisibilityTimeout: 2 * time.Second})
		},
		Plain: func(t *testing.T, name string, bodies ...string) { sendPlain(t, server, name, bodies...) },
		Missing: func(t *testing.T) (string, func()) {
			name := newName(suffix)
			return name, func() { makeQueue(t, server, name) }
		},
		Abilities: brokertest.Abilities{
			MaxPayload: service.MaxMessage, // base64 makes it larger
			OneAtATime: true,
			NoName:     "a/b",
			Dedup:      suffix != "",
			Unordered:  suffix == "",
		},
	}
}

func TestFIFO(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, func(t *testing.T) brokertest.Harness { return queueHarness(t, ".fifo") })
}

func TestStandard(t *testing.T) {
	t.Parallel()
	brokertest.Run(t, func(t *testing.T) brokertest.Harness { return queueHarness(t, "") })
}

// makeTopic creates a topic and a queue of the same name that is subscribed to it.
func makeTopic(t testing.TB, name string, attributes map[string]string) {
	t.Helper()
	server := moto(t)
	makeQueue(t, server, name)
	p := open(t, Config{URL: "sns://us-east-1", Endpoint: server, Account: account})
	defer p.Close()
	if err := p.service.Create(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	topic, err := p.service.Locate(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.service.(*service.Topics).Client.Subscribe(t.Context(), &awssns.SubscribeInput{
		TopicArn: &topic, Protocol: aws.String("sqs"), Endpoint: aws.String(strings.Replace(topic, ":sns:", ":sqs:", 1)), Attributes: attributes,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestTopicFIFO(t *testing.T) {
	t.Parallel()
	quick := regexp.MustCompile(`/(Bytes|AwkwardHeaders|Fields|IDs|NothingBehindAFailure|Repetition|Names|TooLarge|Missing|AbsentAtStart)$`)
	brokertest.Run(t, func(t *testing.T) brokertest.Harness {
		if !quick.MatchString(t.Name()) {
			need.Long(t, "moto is slow")
		}
		h := queueHarness(t, ".fifo")
		server := moto(t)
		raw := map[string]string{"RawMessageDelivery": "true"}
		f := front(server)
		h.Server = f.Listener.Addr().String()
		h.Create = func(t *testing.T) string {
			name := newName(".fifo")
			makeTopic(t, name, raw)
			return name
		}
		h.Publisher = func(t *testing.T, address string) postrider.Publisher {
			return openSecured(t, f, address, Config{URL: "sns://us-east-1", Account: account})
		}
		h.Consumer = func(t *testing.T, name, _ string, limit int) postrider.Consumer {
			return subscribe(t, Config{Endpoint: server, Name: name, InFlight: limit})
		}
		h.Missing = func(t *testing.T) (string, func()) {
			name := newName(".fifo")
			return name, func() { makeTopic(t, name, raw) }
		}
		h.Plain, h.Burying, h.Member = nil, nil, nil // consumers are tested with queues
		h.MaxPayload = 256 << 10                     // base64 makes it larger
		return h
	})
}
