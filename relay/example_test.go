package relay_test

import (
	"context"
	"fmt"
	"log"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/memory"
)

// A relay inside the application, with a Go function as its destination.
func Example() {
	store := memory.Open(memory.Config{})

	ctx, stop := context.WithCancel(context.Background())
	welcome := postrider.PublisherFunc(func(ctx context.Context, m postrider.Message) error {
		fmt.Printf("%s: %s\n", m.Type, m.Payload)
		stop() // enough for an example
		return nil
	})
	carrier, err := relay.New(store, welcome, relay.Config{Feed: "welcome"})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- carrier.Run(ctx) }()

	tx := store.Begin()
	err = store.Enqueue(ctx, tx, postrider.Event("user.registered", postrider.Aggregate{Type: "user", ID: "7"}, map[string]string{"name": "Ada"}))
	if err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
	carrier.Wake() // optional: saves the time until the next poll

	if err := <-done; err != nil {
		log.Fatal(err)
	}
	// Output: user.registered: {"name":"Ada"}
}
