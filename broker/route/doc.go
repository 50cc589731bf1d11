// Package route says which message goes where, under which name and with which ID.
//
// A [Table] is a list of rules, of which the first that matches a message decides. A [Router] is a
// [postrider.Publisher] that follows a table: it hands each message to the destination that its rule names.
//
//	table, err := route.NewTable([]route.Rule{
//		{Match: route.Match{Types: []string{"document_uploaded"}}, Destination: "rabbit", Name: "verify_document", ID: "verify_{id}"},
//		{Match: route.Match{Types: []string{"debug.*"}}, Drop: true},
//		{Destination: "kafka", Name: "{aggregate_type}.events"},
//	})
//
// A message that no rule matches is never lost: it is refused with [ErrNoRoute], its key waits, and the log says which
// route is missing.
package route
