package service

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

const (
	confirmedSQS = "SQS has stored the message on several servers of the region. The queue keeps it until a consumer deletes it, or its retention ends."

	shortRetention = 24 * time.Hour      // with less, an outage over a weekend loses messages
	longRetention  = 14 * 24 * time.Hour // maximum that SQS allows
)

// Queues implements [Service] with SQS.
type Queues struct {
	Client  *sqs.Client
	account string
}

// NewQueues returns SQS at an endpoint, with the queues of an account; both may be empty.
func NewQueues(cfg aws.Config, endpoint, account string) *Queues {
	return &Queues{account: account, Client: sqs.NewFromConfig(cfg, func(o *sqs.Options) {
		o.HTTPClient = tracing{cfg.HTTPClient}
		if endpoint != "" {
			o.BaseEndpoint = &endpoint
		}
	})}
}

// Limits implements [Service].
func (q *Queues) Limits() (name, request int) { return LongestQueue, MaxMessage }

// Locate implements [Service].
func (q *Queues) Locate(ctx context.Context, name string) (string, error) {
	out, err := q.Client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name, QueueOwnerAWSAccountId: orNil(q.account)})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

// Send implements [Service].
func (q *Queues) Send(ctx context.Context, address string, entries []Entry) ([]error, error) {
	in := &sqs.SendMessageBatchInput{QueueUrl: &address, Entries: make([]types.SendMessageBatchRequestEntry, len(entries))}
	for i := range entries {
		e := &entries[i]
		attributes := make(map[string]types.MessageAttributeValue, len(e.attributes))
		for _, a := range e.attributes {
			attributes[a.Name] = types.MessageAttributeValue{DataType: aws.String(stringType), StringValue: aws.String(a.Value)}
		}
		in.Entries[i] = types.SendMessageBatchRequestEntry{
			Id: aws.String(strconv.Itoa(i)), MessageBody: &e.body, MessageAttributes: attributes,
			MessageGroupId: orNil(e.group), MessageDeduplicationId: orNil(e.dedup),
		}
	}
	out, err := q.Client.SendMessageBatch(ctx, in)
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

func orNil(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// answers holds the error of each entry of a request.
type answers []error

var errNoAnswer = errors.New("the answer does not mention the message")

func newAnswers(n int) answers {
	a := make(answers, n)
	for i := range a {
		a[i] = errNoAnswer
	}
	return a
}

func (a answers) set(id *string, err error) {
	if i, wrong := strconv.Atoi(aws.ToString(id)); wrong == nil && i >= 0 && i < len(a) {
		a[i] = err
	}
}

func entryError(code, message *string, senderFault bool) error {
	fault := smithy.FaultServer
	if senderFault {
		fault = smithy.FaultClient
	}
	return &smithy.GenericAPIError{Code: aws.ToString(code), Message: aws.ToString(message), Fault: fault}
}

// Create implements [Service].
func (q *Queues) Create(ctx context.Context, name string) error {
	attributes := map[string]string{string(types.QueueAttributeNameMessageRetentionPeriod): strconv.Itoa(int(longRetention / time.Second))}
	if IsFIFO(name) {
		attributes[string(types.QueueAttributeNameFifoQueue)] = "true"
	}
	_, err := q.Client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if code := codeOf(err); code == "QueueAlreadyExists" || code == "QueueNameExists" {
		return nil // it exists, with other attributes
	}
	return err
}

// Missing implements [Service].
func (q *Queues) Missing(name string) string {
	if IsFIFO(name) {
		return "aws sqs create-queue --queue-name " + name + " --attributes FifoQueue=true,MessageRetentionPeriod=1209600"
	}
	return "aws sqs create-queue --queue-name " + name + " --attributes MessageRetentionPeriod=1209600"
}

// Inspect implements [Service].
func (q *Queues) Inspect(ctx context.Context, name string, in *broker.Inspection) error {
	in.Confirmed = confirmedSQS
	address, err := q.Locate(ctx, name)
	if err != nil {
		return err
	}
	out, err := q.Client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &address, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameMaximumMessageSize,
	}})
	if err != nil {
		return err
	}
	for _, attribute := range []types.QueueAttributeName{types.QueueAttributeNameMessageRetentionPeriod, types.QueueAttributeNameMaximumMessageSize} {
		if value := out.Attributes[string(attribute)]; value != "" {
			in.Settings = append(in.Settings, broker.Setting{Name: string(attribute) + " (" + name + ")", Value: value})
		}
	}
	seconds, err := strconv.Atoi(out.Attributes[string(types.QueueAttributeNameMessageRetentionPeriod)])
	if kept := time.Duration(seconds) * time.Second; err == nil && kept < shortRetention {
		Warn(in, fmt.Sprintf("queue %s drops messages that no consumer has deleted after %v", name, kept),
			"Keep them for up to 14 days: aws sqs set-queue-attributes --queue-url "+address+" --attributes MessageRetentionPeriod=1209600.")
	}
	return nil
}

// Received returns a message that a queue has delivered as a packet.
func Received(name string, m *types.Message) (codec.Packet, error) {
	attributes := make(map[string]string, len(m.MessageAttributes))
	for attribute, value := range m.MessageAttributes {
		if attributes[attribute] = string(value.BinaryValue); value.StringValue != nil {
			attributes[attribute] = *value.StringValue
		}
	}
	body, attributes := unwrap(aws.ToString(m.Body), attributes)
	return unpack(name, aws.ToString(m.MessageId), m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)], body, attributes)
}
