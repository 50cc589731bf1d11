package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/internal/stock"
)

// Holds returns the indexes of messages that no stream holds. It reads the headers of all messages
// that the streams have stored since the given time. It leaves out messages that a stream may have
// dropped because of age or size, and refuses a stream that drops messages for other reasons with
// [postrider.ErrUnsupported]. It implements Holder of package reconcile.
func (p *Publisher) Holds(ctx context.Context, since time.Time, msgs []postrider.Message) (missing []int, err error) {
	s, err := p.sessions.Get(ctx)
	if err != nil {
		return nil, postrider.Unavailable(err)
	}
	return stock.Missing(p.coder, since, msgs, func(subject string, since time.Time) (*stock.Stock, error) {
		found, err := s.link.stored(ctx, subject, since)
		if err != nil {
			return nil, fmt.Errorf("nats: subject %s: %w", subject, err)
		}
		return found, nil
	})
}

// stored reads the IDs of a subject's messages.
func (l *link) stored(ctx context.Context, subject string, since time.Time) (*stock.Stock, error) {
	found := stock.New()
	name, err := l.js.StreamNameBySubject(ctx, subject)
	if err != nil {
		return found, err
	}
	stream, err := l.js.Stream(ctx, name)
	if err != nil {
		return found, err
	}
	info := stream.CachedInfo()
	if info.Config.Retention != jetstream.LimitsPolicy || info.Config.MaxMsgsPerSubject > 0 {
		return found, fmt.Errorf("%w: stream %s removes messages that were read or replaced, so it is unknown whether it has had them",
			postrider.ErrUnsupported, name)
	}
	if info.State.FirstSeq > 1 {
		oldest := info.State.FirstTime
		if info.State.Msgs == 0 {
			oldest = time.Now()
		}
		found.Dropped(oldest)
	}
	if info.State.Msgs == 0 {
		return found, nil
	}
	_, err = readIDs(ctx, stream, subject, since, func(id string) {
		var packet codec.Packet
		packet.SetUniqueID(id) // a replay counts as the message
		found.Add(packet.ID)
	})
	return found, err
}

var errStalled = fmt.Errorf("no message came for %v, and more are there", requestTimeout)

// readIDs reports the IDs of the messages that a stream has stored under a subject since a time, up
// to now. It returns the number of the stream's first message since then.
func readIDs(ctx context.Context, stream jetstream.Stream, subject string, since time.Time, found func(id string)) (first uint64, err error) {
	soon, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	reader, err := stream.OrderedConsumer(soon, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, HeadersOnly: true,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return 0, err
	}
	if state := reader.CachedInfo(); state != nil {
		first = state.Delivered.Stream + 1
		if state.NumPending == 0 {
			return first, nil
		}
	}
	messages, err := reader.Messages(jetstream.PullMaxMessages(10_000))
	if err != nil {
		return 0, err
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	stalled := time.AfterFunc(requestTimeout, messages.Stop)
	defer stalled.Stop()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) {
			return 0, cmp.Or(ctx.Err(), errStalled)
		}
		if err != nil {
			return 0, err
		}
		stalled.Reset(requestTimeout)
		found(m.Headers().Get(client.MsgIdHdr))
		meta, err := m.Metadata()
		if err != nil {
			return 0, err
		}
		if meta.NumPending == 0 {
			return first, nil
		}
	}
}
