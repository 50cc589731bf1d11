package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/redis/server"
	"github.com/postrider/postrider/wire"
)

// A wave is what goes in one transaction. It is bounded because Redis does nothing else meanwhile, is slower with much
// that is queued, and closes connections that have too much.
const (
	maxWave  = 125
	maxBytes = 4 << 20
)

// errWaiting is the outcome of a message as long as it has none.
var errWaiting = errors.New("redis: not sent yet")

// sender publishes one call at a time over its own connection. It deals the messages out to waves.
//
// Inside a transaction nothing changes but by its own commands, so that messages for one stream are all accepted or all
// refused: they may share a wave. A message that goes to another stream than the one of its key before it has to wait
// for the next wave, and so have those of its key that follow.
type sender struct {
	cfg    *Config
	codec  *wire.Codec
	line   line
	packet wire.Packet

	wave     []int // indexes of messages
	out      []byte
	outcomes []error           // of the wave
	streams  map[string]string // of the keys in the wave; empty means that the key waits
	failed   map[string]bool   // keys of which nothing more is to be sent
}

func (s *sender) publish(ctx context.Context, msgs []postrider.Message) []error {
	s.streams, s.failed = make(map[string]string), make(map[string]bool)
	errs := slices.Repeat([]error{errWaiting}, len(msgs))
	for s.fill(msgs, errs) {
		s.settle(msgs, errs, s.line.exchange(ctx, s.out, s.read))
	}
	s.packet = wire.Packet{}
	if cap(s.out) > 2*maxBytes {
		s.out = nil
	}
	if slices.ContainsFunc(errs, failed) {
		return errs
	}
	return nil
}

// fill makes a wave of messages that wait and reports whether there is anything in it.
func (s *sender) fill(msgs []postrider.Message, errs []error) bool {
	s.wave, s.out = s.wave[:0], appendCommand(s.out[:0], "MULTI")
	clear(s.streams)
	for i := range msgs {
		if len(s.wave) == maxWave || len(s.out) >= maxBytes {
			break
		}
		if !errors.Is(errs[i], errWaiting) {
			continue
		}
		key := msgs[i].OrderKey()
		if s.failed[key] {
			errs[i] = postrider.Unavailable(postrider.ErrNotTried)
			continue
		}
		s.codec.Encode(&msgs[i], &s.packet)
		if s.cfg.Format == wire.Raw { // is the ID, the key and the message's own headers, and each field costs Redis time
			s.packet.ContentType = ""
		}
		if key != "" {
			if before, ok := s.streams[key]; ok && before != s.packet.Name {
				s.streams[key] = "" // no stream has this name
				continue
			}
			s.streams[key] = s.packet.Name
		}
		s.wave, s.out = append(s.wave, i), appendEntry(s.out, &s.packet)
	}
	s.out = appendCommand(s.out, "EXEC")
	if s.cfg.WaitReplicas > 0 {
		limit := strconv.FormatInt(s.cfg.WaitTimeout.Milliseconds(), 10)
		s.out = appendCommand(s.out, "WAIT", strconv.Itoa(s.cfg.WaitReplicas), limit)
	}
	return len(s.wave) > 0
}

// read reads the answers to a wave. An error means that what has become of it is unknown.
func (s *sender) read() error {
	s.outcomes = append(s.outcomes[:0], make([]error, len(s.wave))...)
	_, err := s.line.reply()
	if err == nil {
		err = s.readOutcomes() // whether they were queued
	}
	if err != nil {
		return err
	}
	_, aborted := s.line.reply()
	if aborted == nil {
		err = s.readOutcomes()
	} else {
		err = s.abort(aborted)
	}
	if err != nil || s.cfg.WaitReplicas == 0 {
		return err
	}
	replicas, err := s.line.reply()
	if err == nil && aborted == nil && replicas < s.cfg.WaitReplicas {
		err = fmt.Errorf("redis: stored, but only %d of %d replicas have it", replicas, s.cfg.WaitReplicas)
	}
	return err
}

func (s *sender) readOutcomes() error {
	for n := range s.outcomes {
		_, err := s.line.reply()
		if err != nil && !server.IsReply(err) {
			return err
		}
		s.outcomes[n] = err
	}
	return nil
}

// abort is for when nothing was stored. Without those that were refused it may go through; if none was, it is not about
// one of them.
func (s *sender) abort(reason error) error {
	if !server.IsReply(reason) {
		return reason
	}
	if slices.ContainsFunc(s.outcomes, failed) {
		reason = errWaiting
	}
	for n, err := range s.outcomes {
		if err == nil {
			s.outcomes[n] = reason
		}
	}
	return nil
}

func failed(err error) bool { return err != nil }

// settle notes what has become of each message of the wave; err is for all of them.
func (s *sender) settle(msgs []postrider.Message, errs []error, err error) {
	var down error // why nothing more is to be tried
	if err != nil {
		down = postrider.Unavailable(postrider.ErrNotTried)
	}
	for n, i := range s.wave {
		errs[i] = err
		if err == nil && s.outcomes[n] != nil {
			errs[i] = server.Classify(s.outcomes[n])
		}
		if errs[i] == nil || errors.Is(errs[i], errWaiting) {
			continue
		}
		if postrider.ScopeOf(errs[i]) == postrider.ScopeDestination {
			down = errs[i]
		}
		if key := msgs[i].OrderKey(); key != "" {
			s.failed[key] = true
		}
	}
	for i := range errs {
		if down != nil && errors.Is(errs[i], errWaiting) {
			errs[i] = down
		}
	}
}
