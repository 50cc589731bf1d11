package pubsub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/api/iterator"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/postrider/postrider/broker"
)

const (
	confirmed = "The service has stored the message, in more than one zone, and keeps it for the subscriptions that the topic has at that " +
		"moment, until they acknowledge it or their retention ends."
	inspectTime = 15 * time.Second
	shortKept   = 24 * time.Hour
	ordering    = " --enable-message-ordering --expiration-period=never"
)

// Inspect queries the topics and their subscriptions. That requires roles/pubsub.viewer; without
// it, Inspect warns about what it cannot read.
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	conn, err := p.keeper.Get(ctx)
	if err != nil {
		return broker.Inspection{}, err
	}
	in := inspection{broker.Inspection{Confirmed: confirmed}, conn, !p.cfg.Unordered}
	if host := os.Getenv(emulatorHost); host != "" {
		in.warn(emulatorHost+" is set: messages go to the emulator at "+host+", which keeps them in memory", "Unset it in production.")
	}
	for _, name := range names {
		topic, err := p.cfg.path("topics", name)
		if err != nil {
			in.warn(err.Error(), "Correct the name in the routes.")
			continue
		}
		err = in.topic(ctx, name, topic)
		switch status.Code(err) {
		case codes.OK:
		case codes.NotFound:
			in.warn("topic "+name+" does not exist", "Run: "+command(topic, ""))
		case codes.PermissionDenied:
			in.warn("it is not known which subscriptions topic "+name+" has", "Give the relay roles/pubsub.viewer, and look again.")
		default:
			return broker.Inspection{}, prefix(err)
		}
	}
	return in.Inspection, nil
}

type inspection struct {
	broker.Inspection
	conn    connection
	ordered bool
}

func (in *inspection) warn(danger, remedy string) {
	in.Warnings = append(in.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
}

func (in *inspection) set(name string, value any) {
	in.Settings = append(in.Settings, broker.Setting{Name: name, Value: fmt.Sprint(value)})
}

func (in *inspection) topic(ctx context.Context, name, path string) error {
	topic, err := in.conn.TopicAdminClient.GetTopic(ctx, &pubsubpb.GetTopicRequest{Topic: path})
	found := 0
	for all := in.conn.TopicAdminClient.ListTopicSubscriptions(ctx, &pubsubpb.ListTopicSubscriptionsRequest{Topic: path}); err == nil; {
		var subscription string
		if subscription, err = all.Next(); err == nil {
			found++
			err = in.subscription(ctx, subscription)
		}
	}
	if !errors.Is(err, iterator.Done) {
		return err
	}
	in.set("subscriptions ("+name+")", found)
	if found == 0 && topic.GetMessageRetentionDuration() == nil {
		in.warn("topic "+name+" has no subscription and no retention of its own: messages published now are discarded",
			"Create every subscription before the relay starts: "+command(strings.Replace(path, "/topics/", "/subscriptions/", 1), " --topic="+name+ordering))
	}
	return nil
}

func (in *inspection) subscription(ctx context.Context, path string) error {
	s, err := in.conn.SubscriptionAdminClient.GetSubscription(ctx, &pubsubpb.GetSubscriptionRequest{Subscription: path})
	if err != nil {
		return err
	}
	id := path[strings.LastIndexByte(path, '/')+1:]
	kept := s.GetMessageRetentionDuration().AsDuration()
	in.set("enableMessageOrdering ("+id+")", s.GetEnableMessageOrdering())
	in.set("messageRetentionDuration ("+id+")", kept)
	if in.ordered && !s.GetEnableMessageOrdering() {
		in.warn("subscription "+id+" does not keep the order of a key", "Create another one with --enable-message-ordering: it cannot be changed later.")
	}
	if kept > 0 && kept < shortKept {
		in.warn(fmt.Sprintf("subscription %s drops messages that are not received within %v", id, kept),
			"Run: gcloud pubsub subscriptions update "+path+" --message-retention-duration=7d")
	}
	return nil
}
