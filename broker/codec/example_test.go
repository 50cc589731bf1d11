package codec_test

import (
	"fmt"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// A publisher creates one codec and encodes every message with it, in reused memory.
func ExampleCodec_Encode() {
	coder, err := codec.NewCodec(codec.CloudEvents, "https://shop.example.com/orders", codec.Dialect{Prefix: "ce_"})
	if err != nil {
		fmt.Println(err)
		return
	}
	var packet codec.Packet
	coder.Encode(&postrider.Message{
		Type: "order.placed", AggregateType: "order", AggregateID: "42", WireID: "evt-1",
		Payload: []byte(`{"total":12}`), ContentType: "application/json",
	}, &packet)
	fmt.Println(packet.Name, packet.Key, packet.ContentType)
	for _, h := range packet.Headers {
		fmt.Printf("%s: %s\n", h.Name, h.Value)
	}
	fmt.Printf("%s\n", packet.Body)
	// Output:
	// order order/42 application/json
	// ce_specversion: 1.0
	// ce_id: evt-1
	// ce_source: https://shop.example.com/orders
	// ce_type: order.placed
	// ce_subject: 42
	// ce_aggregatetype: order
	// {"total":12}
}

// A consumer decodes other senders' events in either mode.
func ExampleCodec_Decode() {
	coder, err := codec.NewCodec(codec.CloudEvents, "", codec.Dialect{})
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := coder.Decode(&codec.Packet{
		ContentType: "application/cloudevents+json",
		Body:        []byte(`{"specversion":"1.0","id":"7","source":"/shop","type":"order.paid","data":{"by":"card"}}`),
	})
	fmt.Println(m.Type, m.BrokerID(), m.Headers["ce-source"], string(m.Payload), err)
	// Output:
	// order.paid 7 /shop {"by":"card"} <nil>
}
