package redis

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// trimLimit limits the entries removed at a time: Redis does nothing else meanwhile.
const trimLimit = 10_000

// trimming removes entries that every group of the stream has acknowledged, in whole blocks of the
// server. Checking and removing are atomic: a group created in between would otherwise miss
// entries.
var trimming = redis.NewScript(`
local first, firstMs, firstSeq
for _, group in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
	local info = {}
	for i = 1, #group, 2 do info[group[i]] = group[i + 1] end
	local id = info['last-delivered-id']
	if info['pending'] > 0 then id = redis.call('XPENDING', KEYS[1], info['name'])[2] end
	local ms, seq = string.match(id, '(%d+)-(%d+)')
	ms, seq = tonumber(ms), tonumber(seq)
	if not first or ms < firstMs or (ms == firstMs and seq < firstSeq) then first, firstMs, firstSeq = id, ms, seq end
end
if not first then return 0 end
return redis.call('XTRIM', KEYS[1], 'MINID', '~', first, 'LIMIT', ARGV[1])`)

// trim periodically removes acknowledged entries until ctx ends.
func (c *Consumer) trim(ctx context.Context) {
	client := redis.NewUniversalClient(c.options)
	defer func() { _ = client.Close() }()
	tick := time.NewTicker(c.cfg.Trim)
	defer tick.Stop()
	for failing, n := false, 0; ; {
		if n < trimLimit/2 { // otherwise there are more
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return
		}
		var err error
		n, err = trimming.Run(ctx, client, []string{c.cfg.Name}, trimLimit).Int()
		if err != nil && !failing && ctx.Err() == nil {
			c.cfg.Logger.Warn("redis: the stream cannot be trimmed, trying again", "stream", c.cfg.Name, "err", err)
		}
		failing = err != nil
		if n > 0 {
			c.cfg.Logger.Debug("redis: trimmed what all groups have acknowledged", "stream", c.cfg.Name, "entries", n)
		}
	}
}
