package brokers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/webhook"
)

// Webhook receives requests from relays.
func Webhook(mux *http.ServeMux, secret string) error {
	//docs:begin receive
	receiver, err := webhook.NewReceiver(webhook.Config{Secrets: []string{secret}},
		func(ctx context.Context, m postrider.Message) error {
			//docs:skip
			_, err := fmt.Println(m.Type)
			return err
			//docs:resume
		})
	//docs:skip
	if err != nil {
		return err
	}
	//docs:resume
	mux.Handle("POST /hooks/{name}", receiver)
	//docs:end
	return nil
}
