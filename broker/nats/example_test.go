package nats_test

import (
	"fmt"

	client "github.com/nats-io/nats.go"

	"github.com/postrider/postrider/broker/nats"
)

// A login method that no option covers.
func ExampleConfig_options() {
	jwt := func() (string, error) { return "the user's JWT", nil }
	sign := func(nonce []byte) ([]byte, error) { return nonce, nil }
	p, err := nats.NewPublisher(nats.Config{URL: "tls://nats.internal:4222", Options: []client.Option{client.UserJWT(jwt, sign)}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer p.Close()
	_, err = nats.NewPublisher(nats.Config{URL: "tls://nats.internal:4222", Options: []client.Option{client.MaxReconnects(10)}})
	fmt.Println(err)
	// Output: nats: option MaxReconnects cannot be set: a connection that comes back by itself sends again what was sent, behind what followed
}
