package nats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
)

// skew is the assumed maximum difference between the clocks of producers and servers.
const skew = time.Minute

// Holds returns the indexes of messages that no stream holds. It reads the headers of all messages
// that the streams have stored since the given time. It leaves out messages that a stream may have
// dropped because of age or size, and refuses a stream that drops messages for other reasons with
// [postrider.ErrUnsupported]. It implements reconcile's Holder.
func (p *Publisher) Holds(ctx context.Context, since time.Time, msgs []postrider.Message) (missing []int, err error) {
	s, err := p.sessions.Get(ctx)
	if err != nil {
		return nil, postrider.Unavailable(err)
	}
	e, _ := p.encoders.Get().(*encoder)
	defer p.encoders.Put(e)
	ids := make([]string, len(msgs))
	bySubject := make(map[string][]int)
	for i := range msgs {
		var packet codec.Packet
		e.coder.Encode(&msgs[i], &packet)
		ids[i] = packet.ID
		bySubject[packet.Name] = append(bySubject[packet.Name], i)
	}
	for subject, places := range bySubject {
		known, err := s.link.stored(ctx, subject, since.Add(-skew))
		if err != nil {
			return nil, fmt.Errorf("nats: subject %s: %w", subject, err)
		}
		for _, i := range places {
			if !known.ids[ids[i]] && msgs[i].ID.Time().After(known.from) {
				missing = append(missing, i)
			}
		}
	}
	slices.Sort(missing)
	return missing, nil
}

// stock is the content of a stream.
type stock struct {
	ids  map[string]bool
	from time.Time // older messages may have been dropped
}

// stored reads the IDs of a subject's messages.
func (l *link) stored(ctx context.Context, subject string, since time.Time) (stock, error) {
	found := stock{ids: make(map[string]bool)}
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
		return found, fmt.Errorf("%w: stream %s removes messages that were read or replaced, so nobody can tell whether it has had them",
			postrider.ErrUnsupported, name)
	}
	if info.State.FirstSeq > 1 {
		if found.from = info.State.FirstTime.Add(skew); info.State.Msgs == 0 {
			found.from = time.Now().Add(skew)
		}
	}
	if info.State.Msgs == 0 {
		return found, nil
	}
	reader, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{subject}, DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, HeadersOnly: true,
		InactiveThreshold: time.Minute,
	})
	if err != nil {
		return found, err
	}
	if state := reader.CachedInfo(); state != nil && state.NumPending == 0 {
		return found, nil
	}
	return found, found.read(ctx, reader)
}

// read reads everything that is stored at the moment.
func (f *stock) read(ctx context.Context, reader jetstream.Consumer) error {
	messages, err := reader.Messages(jetstream.PullMaxMessages(1000))
	if err != nil {
		return err
	}
	defer messages.Stop()
	stop := context.AfterFunc(ctx, messages.Stop)
	defer stop()
	for {
		m, err := messages.Next()
		if errors.Is(err, jetstream.ErrMsgIteratorClosed) && ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
		var packet codec.Packet
		packet.SetUniqueID(m.Headers().Get(client.MsgIdHdr)) // a replay counts as the message
		f.ids[packet.ID] = true
		meta, err := m.Metadata()
		if err != nil {
			return err
		}
		if meta.NumPending == 0 {
			return nil
		}
	}
}
