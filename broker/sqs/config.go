package sqs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/sqs/internal/service"
)

const (
	schemeSQS = "sqs"
	schemeSNS = "sns"

	// idleConnections are kept open for later calls: a relay has a few shards, each with several
	// requests in flight.
	idleConnections = 64
	longestPoll     = 20 * time.Second // maximum that SQS allows
	longestHold     = 12 * time.Hour   // maximum time for which SQS hides a message
)

// Config configures a [Publisher] or a [Consumer]. Only URL is required, and Name for a consumer.
type Config struct {
	// URL is "sqs://REGION" for queues or, for publishers, "sns://REGION" for topics.
	URL string
	// AWS replaces what the SDK reads from the environment and shared configuration files:
	// credentials, HTTP client and so on. The region comes from URL. It must not configure retries.
	// Defaults to config.LoadDefaultConfig.
	AWS *aws.Config
	// Dial replaces how connections are opened. Defaults to the SDK's dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages. Defaults to [slog.Default].
	Logger *slog.Logger
	// Endpoint is the service's address, if it is not the usual one. Defaults to the SDK's.
	Endpoint string `option:"endpoint" doc:"Address of a VPC endpoint, or of another server that speaks the protocol."`
	// Profile is a profile of the shared configuration files. Defaults to the SDK's.
	Profile string `option:"profile" doc:"Profile of the shared AWS configuration; default: that of AWS_PROFILE."`
	// Account owns the queues or topics. Defaults to the account of the credentials.
	Account string `option:"account" doc:"Account that owns the queues or topics; default: that of the credentials."`
	// Format is the message format. Defaults to [codec.CloudEvents].
	Format codec.Format `option:"format"`
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`

	// Name is the queue to receive from. All its consumers share the messages.
	Name string `option:"name"`
	// PollWait is how long a request waits for messages. Consume ends that much later. Defaults to
	// 5 s; at most 20 s.
	PollWait time.Duration `option:"poll_wait" default:"5s" doc:"How long a request of a consumer waits for messages; it ends by that much later."`
	// VisibilityTimeout is how long a dead consumer's messages stay hidden from others. Defaults to
	// 30 s.
	VisibilityTimeout time.Duration `option:"visibility_timeout" default:"30s" doc:"After how long others get what a consumer had when it died."`
	// InFlight is how many messages are handled concurrently. Defaults to 64. MaxWaiting is how
	// many may wait for their next attempt, or for another message of their key. Defaults to 1000.
	// After Attempts failures, by default 10, a message moves to the queue DeadLetter, if it is
	// set.
	InFlight   int    `option:"in_flight" default:"64"`
	MaxWaiting int    `option:"max_waiting" default:"1000"`
	Attempts   int    `option:"attempts" default:"10"`
	DeadLetter string `option:"dead_letter"`
}

var accountPattern = regexp.MustCompile(`^[0-9]{12}$`)

// prepare sets the defaults, reports all mistakes, and returns the codec.
func (c *Config) prepare(consumer bool) (*codec.Codec, error) {
	broker.SetDefaults(c)
	errs := broker.Negative(*c)
	complain := func(wrong bool, text string) {
		if wrong {
			errs = append(errs, errors.New(text))
		}
	}
	scheme, region, _ := strings.Cut(c.URL, "://")
	complain(scheme != schemeSQS && scheme != schemeSNS || !isRegion(region), "URL is not one such as sqs://eu-central-1 or sns://eu-central-1")
	complain(consumer && scheme == schemeSNS, "URL begins with sns://: a topic has nothing to receive from, subscribe a queue to it")
	if c.Endpoint != "" {
		u, err := url.Parse(c.Endpoint)
		complain(err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https", "Endpoint (endpoint) is not one such as https://sqs.example.com")
	}
	complain(c.Account != "" && !accountPattern.MatchString(c.Account), "Account (account) is not a number of twelve digits")
	complain(c.PollWait > longestPoll, "PollWait (poll_wait) is more than 20s")
	complain(c.VisibilityTimeout < time.Second || c.VisibilityTimeout > longestHold, "VisibilityTimeout (visibility_timeout) is not between 1s and 12h")
	complain(c.AWS != nil && c.Profile != "", "AWS and Profile (profile) are both set: want one of them")
	if c.AWS != nil {
		const why = ": a request that the client repeats can be stored twice, and behind a later one; leave it out"
		complain(c.AWS.Retryer != nil, "AWS.Retryer is set"+why)
		complain(c.AWS.RetryMaxAttempts > 1, "AWS.RetryMaxAttempts is more than 1"+why)
	}
	checkName := func(option, name string) {
		if err := service.CheckName(name, service.LongestQueue); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", option, err))
		}
	}
	if consumer {
		checkName("Name (name)", c.Name)
	}
	if c.DeadLetter != "" {
		checkName("DeadLetter (dead_letter)", c.DeadLetter)
	}
	coder, err := codec.NewCodec(c.Format, c.Source, codec.Dialect{NoID: true})
	return coder, prefix(errors.Join(append(errs, err)...))
}

func isRegion(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func prefix(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqs: %w", err)
}

// load returns the SDK's configuration. It does not connect.
//
// Retries are disabled. A retry after a timeout may be stored in addition to a delayed first
// request, and behind messages that the caller has sent since. A FIFO queue would drop the
// duplicate only within five minutes, a standard one never.
func (c *Config) load() (aws.Config, error) {
	var loaded aws.Config
	if c.AWS != nil {
		loaded = c.AWS.Copy()
	} else {
		var err error
		// An empty profile has no effect. This call does not use the network.
		loaded, err = config.LoadDefaultConfig(context.Background(), config.WithSharedConfigProfile(c.Profile))
		if err != nil {
			return loaded, prefix(err)
		}
	}
	_, loaded.Region, _ = strings.Cut(c.URL, "://")
	loaded.RetryMaxAttempts = 0
	loaded.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	client, ok := loaded.HTTPClient.(*awshttp.BuildableClient)
	if loaded.HTTPClient == nil {
		client, ok = awshttp.NewBuildableClient(), true
	}
	if ok {
		loaded.HTTPClient = client.WithTransportOptions(func(t *http.Transport) {
			t.MaxIdleConnsPerHost = idleConnections
			if c.Dial != nil {
				t.DialContext = c.Dial
			}
		}).Freeze()
	}
	return loaded, nil
}

// closeIdle closes idle connections.
func closeIdle(loaded *aws.Config) {
	if client, ok := loaded.HTTPClient.(interface{ CloseIdleConnections() }); ok {
		client.CloseIdleConnections()
	}
}
