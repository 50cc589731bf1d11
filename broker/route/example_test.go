package route_test

import (
	"context"
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/broker/route"
)

// Types go to queues, each with its own form of ID. Unwanted messages are dropped, and all others
// go to another destination.
func ExampleRouter() {
	table, err := route.NewTable([]route.Rule{
		{Match: route.Match{Types: []string{"document_uploaded"}}, Destination: "jobs", Name: "verify_document", ID: "verify_{id}"},
		{Match: route.Match{Types: []string{"debug.*"}}, Drop: true},
		{Destination: "events", Name: "{aggregate_type}.events"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	jobs, events := memory.New(), memory.New()
	router, err := route.NewRouter(table, map[string]postrider.Publisher{"jobs": jobs, "events": events}, route.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer router.Close()

	router.Publish(context.Background(), []postrider.Message{
		{Type: "document_uploaded", AggregateType: "document", AggregateID: "7"},
		{Type: "order.placed", AggregateType: "order", AggregateID: "42"},
		{Type: "debug.trace"},
	})
	fmt.Println(jobs.Messages()[0].Topic, jobs.Messages()[0].WireID)
	fmt.Println(events.Messages()[0].Topic)
	// Output:
	// verify_document verify_00000000-0000-0000-0000-000000000000
	// order.events
}
