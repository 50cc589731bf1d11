package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// page is how many pending entries are queried at a time.
const page = 1000

// takeOver waits until all entries pending for other members have been idle for ClaimIdle, and
// claims those. New entries are read only after that, so that they do not overtake old entries of a
// dead member. It waits at most as long as a dead member can look alive, plus half of that in case
// it renewed once more: among living members there is no order to keep, and they must not block
// this one.
func (c *Consumer) takeOver(ctx context.Context, client redis.UniversalClient) error {
	begin, waiting := time.Now(), false
	for {
		silent, alive, err := c.others(ctx, client)
		if err != nil {
			return err
		}
		if alive > 0 && time.Since(begin) < c.cfg.ClaimIdle+c.cfg.ClaimIdle/2 {
			if !waiting {
				c.cfg.Logger.Info("redis: waiting for another member to finish or become idle",
					"stream", c.cfg.Name, "group", c.cfg.Group, "entries", alive, "claim_idle", c.cfg.ClaimIdle)
				waiting = true
			}
			select {
			case <-time.After(min(c.cfg.ClaimIdle/20, time.Second)):
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if alive > 0 {
			c.cfg.Logger.Warn("redis: another member of the group is at work: order per key does not hold between them",
				"stream", c.cfg.Name, "group", c.cfg.Group)
		}
		return c.claim(ctx, client, silent)
	}
}

// others returns the pending entries of other members that have fallen silent, and how many pending
// entries the remaining members have.
func (c *Consumer) others(ctx context.Context, client redis.UniversalClient) (silent []string, alive int, err error) {
	for from := "-"; ; {
		pending, err := client.XPendingExt(ctx, &redis.XPendingExtArgs{
			Stream: c.cfg.Name, Group: c.cfg.Group, Start: from, End: "+", Count: page,
		}).Result()
		if err != nil {
			return nil, 0, err
		}
		for i := range pending {
			switch p := &pending[i]; {
			case p.Consumer == c.cfg.Member:
			case p.Idle >= c.cfg.ClaimIdle:
				silent = append(silent, p.ID)
			default:
				alive++
			}
		}
		if len(pending) < page {
			return silent, alive, nil
		}
		from = "(" + pending[len(pending)-1].ID
	}
}

// claim claims entries. They are then pending for this member.
func (c *Consumer) claim(ctx context.Context, client redis.UniversalClient, ids []string) error {
	for len(ids) > 0 {
		n := min(len(ids), page)
		err := client.XClaimJustID(ctx, &redis.XClaimArgs{
			Stream: c.cfg.Name, Group: c.cfg.Group, Consumer: c.cfg.Member, MinIdle: c.cfg.ClaimIdle, Messages: ids[:n],
		}).Err()
		if err != nil {
			return err
		}
		ids = ids[n:]
	}
	return nil
}
