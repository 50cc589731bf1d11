// Package service provides Amazon SQS and Amazon SNS behind one interface, with a common message
// encoding.
package service

import (
	"context"

	"github.com/postrider/postrider/broker"
)

// Service is a target for publishing: [Queues] or [Topics].
type Service interface {
	// Locate returns the address of a name: the URL of a queue, or the ARN of a topic.
	Locate(ctx context.Context, name string) (string, error)
	// Send sends entries in one request. It returns one error per entry, or one for all.
	Send(ctx context.Context, address string, entries []Entry) ([]error, error)
	// Inspect adds the settings and warnings for a name.
	Inspect(ctx context.Context, name string, in *broker.Inspection) error
	// Create makes a queue or a topic. A new topic has no subscription.
	Create(ctx context.Context, name string) error
	// Missing returns the command that creates a missing queue or topic.
	Missing(name string) string
	// Limits returns the maximum length of a name in characters, and the maximum size of a request
	// with several entries in bytes.
	Limits() (name, request int)
}

// Warn adds a warning.
func Warn(in *broker.Inspection, danger, remedy string) {
	in.Warnings = append(in.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
}
