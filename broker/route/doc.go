// Package route decides which destination a message goes to, under which name and with which ID.
//
// A [Table] is a list of rules; the first rule that matches a message decides. A [Router] is a
// [postrider.Publisher] that sends each message to the destination that its rule names.
//
//	table, err := route.NewTable([]route.Rule{
//		{Match: route.Match{Types: []string{"document_uploaded"}}, Destination: "rabbit", Name: "verify_document", ID: "verify_{id}"},
//		{Match: route.Match{Types: []string{"debug.*"}}, Drop: true},
//		{Destination: "kafka", Name: "{aggregate_type}.events"},
//	})
//
// A message that no rule matches is never lost. The router refuses it with [ErrNoRoute], its key
// waits, and the log names the missing route.
package route
