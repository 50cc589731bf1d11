package memory

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

var _ admin.Records = (*DB)(nil)

// Audit implements [admin.Records]. If before is not positive, it begins with the newest entry.
func (s *DB) Audit(ctx context.Context, feed string, before int64, limit int) ([]admin.Entry, error) {
	var page []admin.Entry
	err := s.locked(ctx, func(time.Time) error {
		for _, e := range slices.Backward(s.records) {
			if before > 0 && e.N >= before || feed != "" && feed != e.Feed {
				continue
			}
			if len(page) >= limit {
				break
			}
			e.Target, e.Before, e.After = maps.Clone(e.Target), maps.Clone(e.Before), maps.Clone(e.After)
			page = append(page, e)
		}
		return nil
	})
	return page, err
}

// Reveal implements [admin.Records].
func (s *DB) Reveal(ctx context.Context, by admin.By, feed string, id postrider.ID) error {
	return s.locked(ctx, func(now time.Time) error {
		e := entryOf(by, "reveal", feed, now)
		e.Count, e.Target = 1, map[string]any{"id": id.String()}
		s.record(e)
		return nil
	})
}

func entryOf(by admin.By, action, feed string, now time.Time) admin.Entry {
	return admin.Entry{At: now, Who: by.Who, Why: by.Why, Action: action, Feed: feed}
}

// record adds an entry. The caller holds the lock.
func (s *DB) record(e admin.Entry) {
	e.N = int64(len(s.records)) + 1
	s.records = append(s.records, e)
}

// describe returns what an audit entry says about messages: the main fields of a single one, or the
// number of messages by status.
func describe(rows []*feeds.Deferred) map[string]any {
	if len(rows) > 1 {
		counts := make(map[string]any)
		for _, d := range rows {
			n, _ := counts[string(d.Status)].(int)
			counts[string(d.Status)] = n + 1
		}
		return counts
	}
	d := rows[0]
	payload := string(d.Payload)
	if !utf8.ValidString(payload) {
		payload = base64.StdEncoding.EncodeToString(d.Payload)
	}
	return map[string]any{
		"id": d.ID.String(), "type": d.Type, "topic": d.Topic, "status": string(d.Status), "attempts": d.Attempts, "last_error": d.LastError,
		"payload": payload,
	}
}

func describeFilter(filter admin.Filter) map[string]any {
	encoded, _ := json.Marshal(filter) // cannot fail: all fields can be encoded
	var target map[string]any
	_ = json.Unmarshal(encoded, &target)
	return target
}
