package relay_test

import (
	"fmt"
	"os"

	"github.com/postrider/postrider/relay"
)

// A program that embeds a relay in place of another outbox and keeps its environment variables.
func ExampleReadEnvironment() {
	_ = os.Setenv("INTEV_BATCH_SIZE", "50")
	_ = os.Setenv("INTEV_BACKOFF_SERIES", "[1000,5000]")
	env, err := relay.ReadEnvironment()
	if err != nil {
		fmt.Println(err)
		return
	}
	cfg := relay.Config{Feed: "default"}
	used := env.Fill(&cfg)
	fmt.Println(env.Enabled, cfg.BatchSize, cfg.Retry.Pauses, used)
	// Output: true 50 [1s 5s] [INTEV_BATCH_SIZE INTEV_BACKOFF_SERIES]
}
