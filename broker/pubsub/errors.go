package pubsub

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/postrider/postrider"
)

var errNotConfirmed = errors.New("pubsub: not confirmed")

// projectReasons are reasons of PermissionDenied that affect the whole project, not one topic.
var projectReasons = map[string]bool{
	"SERVICE_DISABLED": true, "CONSUMER_INVALID": true, "CONSUMER_SUSPENDED": true, "BILLING_DISABLED": true,
	"USER_PROJECT_DENIED": true, "ACCESS_TOKEN_SCOPE_INSUFFICIENT": true, "API_KEY_SERVICE_BLOCKED": true,
}

// meaning classifies the failure of a request with messages for a topic. Messages may have arrived
// if the error has no class.
func meaning(ctx context.Context, topic string, err error) error {
	var info interface{ Reason() string } // implemented by the client's errors
	wholeProject := errors.As(err, &info) && projectReasons[info.Reason()]
	switch code := status.Code(err); {
	case code == codes.NotFound:
		return postrider.NameUnavailable(fmt.Errorf("pubsub: topic %s does not exist; run: %s", topic, command(topic, "")))
	case code == codes.PermissionDenied && !wholeProject:
		return postrider.NameUnavailable(fmt.Errorf("pubsub: no permission to publish to %s, which takes roles/pubsub.publisher: %w", topic, err))
	case code == codes.FailedPrecondition: // for example a disabled encryption key of the topic, or a region that its policy forbids
		return postrider.NameUnavailable(prefix(err))
	case code == codes.PermissionDenied, code == codes.Unauthenticated, code == codes.Unavailable, code == codes.ResourceExhausted:
		return postrider.Unavailable(prefix(err))
	case code == codes.InvalidArgument:
		return postrider.Permanent(prefix(err))
	case ctx.Err() != nil:
		return fmt.Errorf("%w: %w", errNotConfirmed, context.Cause(ctx))
	default:
		return fmt.Errorf("%w: %w", errNotConfirmed, err)
	}
}

// receiveError adds a remedy to the error of a subscription.
func receiveError(subscription string, err error) error {
	switch status.Code(err) {
	case codes.NotFound:
		return fmt.Errorf("pubsub: subscription %s does not exist; run: %s: %w",
			subscription, command(subscription, " --topic=TOPIC --enable-message-ordering --expiration-period=never"), err)
	case codes.PermissionDenied:
		return fmt.Errorf("pubsub: no permission to receive from %s, which takes roles/pubsub.subscriber: %w", subscription, err)
	default:
		return prefix(err)
	}
}
