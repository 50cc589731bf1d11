package memory_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
)

// A test simulates a broker that refuses one kind of message, and reads what has arrived.
func Example() {
	ctx := context.Background()
	broker := memory.New()
	broker.Fail(func(m postrider.Message) error {
		if m.Type == "invoice.sent" {
			return postrider.Permanent(errors.New("no such topic"))
		}
		return nil
	})

	// In a real test, a relay does this.
	errs := broker.Publish(ctx, []postrider.Message{
		postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]int{"items": 3}),
		postrider.Event("invoice.sent", postrider.Aggregate{Type: "invoice", ID: "7"}, nil),
	})
	fmt.Println("refused:", errs[1], "-", postrider.ClassOf(errs[1]))

	arrived, err := broker.Wait(ctx, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range arrived {
		fmt.Println("arrived:", m.Type, m.OrderKey(), string(m.Payload))
	}
	// Output:
	// refused: no such topic - permanent
	// arrived: order.placed order/42 {"items":3}
}
