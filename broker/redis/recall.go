package redis

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/internal/stock"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

const recallPage = 200

// Recall implements [broker.Recaller]. The user needs permission for the keys that begin with the
// stream's name; in a cluster also for those that begin with the name in braces.
func (p *Publisher) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	from, ok := broker.SenderOf(ctx)
	if !ok {
		return slices.Repeat([]error{broker.ErrCannotRecall}, len(names))
	}
	return broker.EachName(names, p.cfg.Connections, found, func(stream string, found func(id string)) error {
		if err := p.raise(ctx, from, stream); err != nil {
			return err
		}
		err := p.recalls.Recall(ctx, stream, since, found, func(ctx context.Context, since time.Time, found func(id string)) error {
			return p.stored(ctx, stream, since, found)
		})
		if server.HasCode(err, "NOPERM") { // to wait would be for ever
			return broker.CannotRecall("redis: the user needs the permission for TIME, and for XRANGE and XINFO STREAM of %s: %w", stream, err)
		}
		if server.IsReply(err) {
			return server.Classify(err)
		}
		return err
	})
}

// stored reports the entries that a stream has stored since a time.
func (p *Publisher) stored(ctx context.Context, stream string, since time.Time, found func(id string)) error {
	client := p.routes.client
	node, err := p.routes.primary(ctx, stream) // whose clock the entries have
	if err != nil {
		return postrider.Unavailable(fmt.Errorf("redis: asking the cluster: %w", err))
	}
	now, err := node.Time(ctx).Result()
	if err != nil {
		return err
	}
	since = stock.Since(since, now)
	// Ask after the entries what was deleted: what is deleted while they are read counts.
	next := strconv.FormatInt(since.UnixMilli(), 10)
	for {
		page, err := client.XRangeN(ctx, stream, next, "+", recallPage).Result()
		if err != nil {
			return err
		}
		for i := range page {
			entry := packet(stream, page[i].ID, page[i].Values)
			if id, ok := p.coder.Sent(&entry); ok {
				found(id)
			}
		}
		if len(page) < recallPage {
			break
		}
		next = "(" + page[len(page)-1].ID
	}
	info, err := client.XInfoStream(ctx, stream).Result()
	if server.HasCode(err, "no such key") {
		return nil
	}
	switch {
	case err != nil:
		return err
	case info.Length > 0 && info.EntriesAdded == 0:
		return broker.CannotRecall("redis: a server before version 7 does not say what was deleted")
	case forgotten(info, since):
		return broker.CannotRecall("redis: entries of %s were deleted that are younger than %v", stream, time.Since(since).Round(time.Second))
	}
	return nil
}

// forgotten reports whether entries may have been deleted that were added since a time.
func forgotten(info *redis.XInfoStream, since time.Time) bool {
	switch {
	case info.Length == info.EntriesAdded, older(info.LastGeneratedID, since):
		return false
	case !older(info.MaxDeletedEntryID, since):
		return true
	default: // the oldest entries may have been trimmed
		return info.Length == 0 || !older(info.FirstEntry.ID, since)
	}
}

// older reports whether an entry was added before a time.
func older(id string, since time.Time) bool {
	text, _, _ := strings.Cut(id, "-")
	at, err := strconv.ParseInt(text, 10, 64)
	return err == nil && at < since.UnixMilli()
}
