package redis_test

import (
	"context"
	"fmt"

	client "github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker/redis"
)

// A login method that no option covers: a cloud token that is valid for minutes.
func ExampleConfig_client() {
	token := func(context.Context) (user, password string, err error) { return "postrider", "a token", nil }
	p, err := redis.NewPublisher(redis.Config{
		URL: "rediss://cache.internal:6379", Client: &client.UniversalOptions{CredentialsProviderContext: token},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = redis.NewPublisher(redis.Config{URL: "rediss://cache.internal:6379", Client: &client.UniversalOptions{MaxRetries: 3}})
	fmt.Println(err)
	// Output: redis: the client has MaxRetries: what the client sends again can arrive twice, or after what follows
}
