package inbox

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// identify gives a message without an ID one by which a redelivery is recognized. Consumers that
// use [codec.Codec.Decode] have set the ID already; others leave it in WireID. A message that has
// neither, and of which the broker reports no position, gets a random ID and is handled at every
// delivery. Dropping it would be worse, and two such messages cannot be told apart.
func (in *Inbox[Tx]) identify(m *postrider.Message) {
	switch {
	case !m.ID.IsZero():
	case m.WireID != "":
		m.ID = codec.Identity(m.Topic, m.WireID)
	default:
		m.ID = postrider.NewID()
		in.unnamed.Do(func() {
			in.cfg.Logger.Warn("inbox: received a message without an ID: redeliveries of such messages are handled again",
				"consumer", in.name, "topic", m.Topic, "type", m.Type)
		})
	}
}
