// Package webhook delivers messages over HTTP: a [Publisher] posts each to an endpoint, signed as Standard Webhooks
// says, and a [Receiver] is the endpoint's side of it, an [http.Handler] that verifies and decodes.
//
//	pub, err := webhook.NewPublisher(webhook.Config{
//		URL:     "https://example.com/hooks/{name}",
//		Secrets: []string{"whsec_..."},
//	})
//
// Confirmed means that the endpoint has answered with a 2xx status. Nothing else counts, and the answer's body is not
// looked at: an endpoint that answers 200 before it has stored the message can lose it.
//
// Connections go to public addresses only. The check is made on the address that is dialled, and no redirect is
// followed, so that no name leads into the own network; Config.AllowPrivate makes exceptions.
package webhook
