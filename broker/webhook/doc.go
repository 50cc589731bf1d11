// Package webhook delivers messages over HTTP. A [Publisher] posts each message to an endpoint,
// signed according to Standard Webhooks. A [Receiver] is the endpoint: an [http.Handler] that
// verifies and decodes.
//
//	pub, err := webhook.NewPublisher(webhook.Config{
//		URL:     "https://example.com/hooks/{name}",
//		Secrets: []string{"whsec_..."},
//	})
//
// A message is confirmed when the endpoint has answered with a 2xx status. The body of the answer
// is ignored. An endpoint that answers 200 before it has stored the message can lose it.
//
// Connections go to public addresses only. The check applies to the address that is dialled, and
// redirects are not followed, so that no host name can lead into the local network.
// Config.AllowPrivate and Config.AllowLoopback define exceptions.
package webhook
