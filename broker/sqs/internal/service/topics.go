package service

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/postrider/postrider/broker"
)

const (
	confirmedSNS = "SNS has stored the message on several servers of the region, and delivers it to the topic's subscriptions. It does not keep it after that."

	// topicRequest is the maximum size of a request to a topic whose MaximumMessageSize is not set.
	// A larger message is sent alone, because its topic may accept up to MaxMessage.
	topicRequest = 256 << 10
)

// Topics implements [Service] with SNS.
type Topics struct {
	Client *sns.Client

	sts     *sts.Client
	account string

	region string
	mu     sync.Mutex
}

// NewTopics returns SNS at an endpoint, with the topics of an account; both may be empty.
func NewTopics(cfg aws.Config, endpoint, account string) *Topics {
	return &Topics{region: cfg.Region, account: account, sts: sts.NewFromConfig(cfg), Client: sns.NewFromConfig(cfg, func(o *sns.Options) {
		o.HTTPClient = tracing{cfg.HTTPClient}
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})}
}

// Limits implements [Service].
func (t *Topics) Limits() (name, request int) { return LongestTopic, topicRequest }

// Locate builds the ARN of a topic, which contains the account. SNS identifies topics by ARN only.
func (t *Topics) Locate(ctx context.Context, name string) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.account == "" {
		who, err := t.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
		if err != nil {
			return "", fmt.Errorf("asking for the account of the credentials; set the option account to do without: %w", err)
		}
		t.account = aws.ToString(who.Account)
	}
	return arn.ARN{Partition: partition(t.region), Service: "sns", Region: t.region, AccountID: t.account, Resource: name}.String(), nil
}

// partition returns the AWS partition of a region.
func partition(region string) string {
	for prefix, name := range map[string]string{
		"cn-": "aws-cn", "us-gov-": "aws-us-gov", "us-iso-": "aws-iso", "us-isob-": "aws-iso-b", "us-isof-": "aws-iso-f",
		"eu-isoe-": "aws-iso-e", "eusc-": "aws-eusc",
	} {
		if strings.HasPrefix(region, prefix) {
			return name
		}
	}
	return "aws"
}

// Send implements [Service].
func (t *Topics) Send(ctx context.Context, address string, entries []Entry) ([]error, error) {
	in := &sns.PublishBatchInput{TopicArn: &address, PublishBatchRequestEntries: make([]types.PublishBatchRequestEntry, len(entries))}
	for i := range entries {
		e := &entries[i]
		attributes := make(map[string]types.MessageAttributeValue, len(e.attributes))
		for _, a := range e.attributes {
			attributes[a.Name] = types.MessageAttributeValue{DataType: aws.String(stringType), StringValue: aws.String(a.Value)}
		}
		in.PublishBatchRequestEntries[i] = types.PublishBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), Message: &e.body, MessageAttributes: attributes,
			MessageGroupId: orNil(e.group), MessageDeduplicationId: orNil(e.dedup),
		}
	}
	out, err := t.Client.PublishBatch(ctx, in)
	if err != nil {
		return nil, err
	}
	a := newAnswers(len(entries))
	for _, done := range out.Successful {
		a.set(done.Id, nil)
	}
	for _, f := range out.Failed {
		a.set(f.Id, entryError(f.Code, f.Message, f.SenderFault))
	}
	return a, nil
}

// Create implements [Service].
func (t *Topics) Create(ctx context.Context, name string) error {
	in := &sns.CreateTopicInput{Name: &name}
	if IsFIFO(name) {
		in.Attributes = map[string]string{"FifoTopic": "true"}
	}
	_, err := t.Client.CreateTopic(ctx, in)
	return err
}

// Missing implements [Service].
func (t *Topics) Missing(name string) string {
	if IsFIFO(name) {
		return "aws sns create-topic --name " + name + " --attributes FifoTopic=true"
	}
	return "aws sns create-topic --name " + name
}

// Inspect implements [Service].
func (t *Topics) Inspect(ctx context.Context, name string, in *broker.Inspection) error {
	in.Confirmed = confirmedSNS
	address, err := t.Locate(ctx, name)
	if err != nil {
		return err
	}
	out, err := t.Client.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &address})
	if err != nil {
		return err
	}
	subscriptions := out.Attributes["SubscriptionsConfirmed"]
	in.Settings = append(in.Settings, broker.Setting{Name: "SubscriptionsConfirmed (" + name + ")", Value: subscriptions})
	if subscriptions == "0" {
		Warn(in, fmt.Sprintf("topic %s has no subscription: messages published now are confirmed and go nowhere", name),
			"Subscribe each queue before the relay starts: aws sns subscribe --protocol sqs --attributes RawMessageDelivery=true --topic-arn "+
				address+" --notification-endpoint ARN_OF_THE_QUEUE.")
	}
	return nil
}
