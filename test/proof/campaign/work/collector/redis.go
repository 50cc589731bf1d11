package collector

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/test/proof/campaign/world"
)

// readRedis reads a stream by the IDs of its entries, which consist of a time and a number.
func readRedis(address string, take take) func(context.Context) error {
	last := "0-0"
	return func(ctx context.Context) error {
		options, err := redis.ParseURL(address)
		if err != nil {
			return err
		}
		options.MaxRetries = -1
		client := redis.NewClient(options)
		defer client.Close()
		for {
			streams, err := client.XRead(ctx, &redis.XReadArgs{Streams: []string{world.Redis, last}, Count: 500, Block: time.Second}).Result()
			if errors.Is(err, redis.Nil) {
				continue
			}
			if err != nil {
				return err
			}
			for _, m := range streams[0].Messages {
				var millis, number int64
				if _, err := fmt.Sscanf(m.ID, "%d-%d", &millis, &number); err != nil {
					return fmt.Errorf("entry %s: %w", m.ID, err)
				}
				e := entry{offset: millis<<20 + number, at: time.UnixMilli(millis)}
				for name, value := range m.Values {
					text, _ := value.(string)
					switch name {
					case "ce-id":
						e.id = text
					case "data":
						e.payload = []byte(text)
					default:
						e.headers.Add(name, text)
					}
				}
				take(e)
				last = m.ID
			}
		}
	}
}
