// Package enqueue validates messages before an outbox writes them.
package enqueue

import "github.com/postrider/postrider"

// Validate returns an [*postrider.InvalidError] for the first reason that the messages cannot be enqueued together: an error of
// [postrider.Message.Validate], an aggregate type without an ID, or a duplicate ID. Outboxes call it.
func Validate(msgs []postrider.Message) error {
	for i := range msgs {
		m := &msgs[i]
		if err := m.Validate(); err != nil {
			return err
		}
		if m.AggregateType != "" && m.AggregateID == "" && m.Key == "" {
			return &postrider.InvalidError{Field: "AggregateID", Reason: "is empty: all messages of the aggregate type would have one ordering key"}
		}
	}
	if len(msgs) < 2 {
		return nil
	}
	seen := make(map[postrider.ID]bool, len(msgs))
	for i := range msgs {
		if id := msgs[i].ID; !id.IsZero() {
			if seen[id] {
				return &postrider.InvalidError{Field: "ID", Reason: id.String() + " is used twice: consumers would take one of the messages for a repetition"}
			}
			seen[id] = true
		}
	}
	return nil
}
