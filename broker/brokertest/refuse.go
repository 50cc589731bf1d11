package brokertest

import (
	"testing"

	"github.com/postrider/postrider"
)

func testTooLarge(t *testing.T, h Harness) {
	if h.MaxPayload == 0 {
		t.Skip("n/a: no size is refused")
	}
	name := h.Create(t)
	refuseOne(t, h, name, func(m *postrider.Message) { m.Payload = make([]byte, h.MaxPayload) })

	name = h.Create(t)
	half := message(name, "half", 0)
	half.Payload = make([]byte, h.MaxPayload/2)
	publish(t, h.direct(t), half)
	if got := find(t, h.listen(t, name, "half").wait(t, []postrider.Message{half}), half); len(got.Payload) != len(half.Payload) {
		t.Errorf("got %d bytes, want %d", len(got.Payload), len(half.Payload))
	}
}

func testMissing(t *testing.T, h Harness) {
	if h.Missing == "" {
		t.Skip("n/a: every name is accepted")
	}
	refuseOne(t, h, h.Create(t), func(m *postrider.Message) { m.Topic = h.Missing })
}

func testForbidden(t *testing.T, h Harness) {
	if h.Forbidden == "" {
		t.Skip("n/a: no name is forbidden")
	}
	refuseOne(t, h, h.Create(t), func(m *postrider.Message) { m.Topic = h.Forbidden })
}

// refuseOne publishes a message that is made bad between good ones, several times: it alone is refused, for good.
func refuseOne(t *testing.T, h Harness, name string, spoil func(*postrider.Message)) {
	t.Helper()
	p := h.direct(t)
	var good []postrider.Message
	for round := range 3 {
		msgs := make([]postrider.Message, 20)
		for i := range msgs {
			msgs[i] = message(name, string(rune('a'+i)), round)
		}
		bad := []int{0, 10, 19}[round]
		spoil(&msgs[bad])
		errs := p.Publish(t.Context(), msgs)
		if len(errs) != len(msgs) {
			t.Fatalf("got %d errors for %d messages, one of them bad", len(errs), len(msgs))
		}
		var again []postrider.Message
		for i, err := range errs {
			switch {
			case i == bad:
				if postrider.ClassOf(err) != postrider.ClassPermanent {
					t.Errorf("the bad message: %v error %v, want permanent", postrider.ClassOf(err), err)
				}
				continue
			case postrider.ClassOf(err) == postrider.ClassPermanent:
				t.Errorf("message %d is good and was refused: %v", i, err)
			case err != nil:
				again = append(again, msgs[i]) // the neighbour may have to be sent again, but not for good
			}
			good = append(good, msgs[i])
		}
		insist(t, p, again)
	}
	h.listen(t, name, "refuse").wait(t, good)
}
