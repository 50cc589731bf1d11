// Package service is Amazon SQS and Amazon SNS behind one port, and a message as both carry it.
package service

import (
	"context"

	"github.com/postrider/postrider/broker"
)

// Service is what a publisher sends to: [Queues] or [Topics].
type Service interface {
	// Locate returns the address of a name: the URL of a queue, or the ARN of a topic.
	Locate(ctx context.Context, name string) (string, error)
	// Send sends entries in one request. It returns one error an entry, or one for all.
	Send(ctx context.Context, address string, entries []Entry) ([]error, error)
	// Inspect adds what the service says about a name.
	Inspect(ctx context.Context, name string, in *broker.Inspection) error
	// Create makes a queue or a topic. A topic has no subscription then.
	Create(ctx context.Context, name string) error
	// Missing returns the command that creates a name that there is nothing for.
	Missing(name string) string
	// Limits returns the most characters of a name, and the most bytes of a request with several entries.
	Limits() (name, request int)
}

// Warn adds a warning.
func Warn(in *broker.Inspection, danger, remedy string) {
	in.Warnings = append(in.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
}
