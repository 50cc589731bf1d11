package inbox

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// identify gives a message the ID by which it is recognised when it comes again. Consumers have set it already, as
// [codec.Codec.Decode] does; what is left came from somebody else's. A message that has no ID at all, and of which the broker
// does not say where it stands, is handled each time that it comes: dropping it would be worse, and no two can be told apart.
func (in *Inbox[Tx]) identify(m *postrider.Message) {
	switch {
	case !m.ID.IsZero():
	case m.WireID != "":
		m.ID = codec.Identity(m.Topic, m.WireID)
	default:
		m.ID = postrider.NewID()
		in.unnamed.Do(func() {
			in.cfg.Logger.Warn("inbox: there are messages without an ID: one that comes again is handled again",
				"consumer", in.name, "topic", m.Topic, "type", m.Type)
		})
	}
}
