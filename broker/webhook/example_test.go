package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
)

// A publisher and its endpoint. In a real program the publisher is in the relay and the endpoint in
// another service.
func Example() {
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

	// The endpoint. It answers 204 once the handler has returned nil.
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{secret}}, func(_ context.Context, m postrider.Message) error {
		fmt.Println("received:", m.Topic, m.Type, m.OrderKey(), string(m.Payload))
		return nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("POST /hooks/{name}", receiver)
	server := httptest.NewServer(mux)
	defer server.Close()

	// The sender. A relay publishes, and retries until the message is confirmed.
	publisher, err := webhook.NewPublisher(webhook.Config{
		URL:           server.URL + "/hooks/{name}",
		Secrets:       []string{secret},
		AllowLoopback: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer publisher.Close()
	m := postrider.Event("order.placed", postrider.Aggregate{Type: "order", ID: "42"}, map[string]int{"items": 3})
	m.Topic = "orders"
	if errs := publisher.Publish(context.Background(), []postrider.Message{m}); errs == nil {
		fmt.Println("confirmed")
	}
	// Output:
	// received: orders order.placed order/42 {"items":3}
	// confirmed
}
