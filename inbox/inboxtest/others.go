package inboxtest

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/inbox"
)

// othersMessages checks that an inbox handles each message of senders that do not use Postrider
// once, and never takes two similar messages for one.
func othersMessages[Tx any](s *scene[Tx]) {
	in, err := inbox.New(s.Store, consumer, inbox.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		s.t.Fatal(err)
	}
	in.Handle("*", func(ctx context.Context, tx Tx, m postrider.Message) error {
		return s.Mark(ctx, tx, string(m.Payload))
	})
	coder, err := codec.NewCodec(codec.CloudEvents, "", codec.Dialect{Prefix: "ce_", NoID: true})
	if err != nil {
		s.t.Fatal(err)
	}
	const u4, u7 = "8c6f1c1e-6f0a-4c9c-9a35-0d5b3bb1d6b1", "01931c1e-6f0a-7c9c-9a35-0d5b3bb1d6b1"
	var packets []codec.Packet
	for _, source := range []string{"/shop", "/crm"} {
		for _, id := range []string{"created-" + u4, "cancelled-" + u4, "1001", u4, u7} {
			packets = append(packets, codec.Packet{Name: "orders", Key: "42", Headers: []codec.Header{
				{Name: "ce_specversion", Value: "1.0"}, {Name: "ce_id", Value: id}, {Name: "ce_source", Value: source}, {Name: "ce_type", Value: "t"},
			}})
		}
	}
	for _, topic := range []string{"orders", "stock"} {
		packets = append(packets, codec.Packet{Name: topic, Key: "42", Headers: []codec.Header{{Name: "message-id", Value: "1001"}}})
		for offset := range 3 { // alike in everything except their position
			packets = append(packets, codec.Packet{Name: topic, Key: "42", Place: fmt.Sprint("0/", offset)})
		}
	}
	var want []string
	for i := range packets {
		packets[i].Body = []byte(fmt.Sprint(i))
		want = append(want, fmt.Sprint(i))
	}
	receive := func(packets ...codec.Packet) {
		for i := range packets {
			m, err := coder.Decode(&packets[i])
			if err == nil {
				err = in.Receive(s.ctx, m)
			}
			if err != nil {
				s.t.Fatal(err)
			}
		}
	}
	receive(packets...)
	slices.Reverse(packets)
	receive(packets...) // redeliver all
	s.wantMarks(want...)

	// A message without an ID or position cannot be recognized when it is redelivered. It takes
	// effect each time.
	nameless := codec.Packet{Name: "queue", Body: []byte("nameless")}
	receive(nameless, nameless)
	s.wantMarks(append(want, "nameless", "nameless")...)
	s.wantDeferred()
}
