package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/internal/server"
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
// for the next wave, and so have those of its key that follow. In a cluster a wave is for one stream, because a transaction is for one
// slot, and what one node refuses says nothing about streams of others.
type sender struct {
	cfg    *Config
	coder  *codec.Codec
	routes *routes
	lines  map[string]*line // by the server's address
	packet codec.Packet

	wave     []int  // indexes of messages
	stream   string // of the first one
	line     *line  // to its server
	out      []byte
	outcomes []error           // of the wave
	streams  map[string]string // of the keys in the wave; empty means that the key waits
	failed   map[string]bool   // keys of which nothing more is to be sent
}

func (s *sender) publish(ctx context.Context, msgs []postrider.Message) []error {
	s.streams, s.failed = make(map[string]string), make(map[string]bool)
	errs := slices.Repeat([]error{errWaiting}, len(msgs))
	for s.fill(msgs, errs) {
		s.settle(msgs, errs, s.exchange(ctx))
	}
	s.packet = codec.Packet{}
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
		if !s.fits(&msgs[i], key) {
			continue
		}
		s.coder.Encode(&msgs[i], &s.packet)
		if s.cfg.Format == codec.Raw { // is the ID, the key and the message's own headers, and each field costs Redis time
			s.packet.ContentType = ""
		}
		s.wave, s.out = append(s.wave, i), appendEntry(s.out, &s.packet)
	}
	s.out = appendCommand(s.out, "EXEC")
	return len(s.wave) > 0
}

// fits reports whether a message may be in the wave. If it may not, those of its key that follow may not either.
func (s *sender) fits(m *postrider.Message, key string) bool {
	name := s.coder.Name(m)
	if len(s.wave) == 0 {
		s.stream = name
	}
	before, again := s.streams[key]
	fits := !again || before == name
	if s.routes.cluster != nil && name != s.stream {
		fits = false
	}
	if key != "" && fits {
		s.streams[key] = name
	} else if key != "" {
		s.streams[key] = "" // no stream has this name
	}
	return fits
}

// exchange sends the wave to the server of its streams and reads the answers.
func (s *sender) exchange(ctx context.Context) error {
	server, err := s.routes.to(ctx, s.stream)
	if err != nil {
		s.routes.changed(ctx)
		return postrider.Unavailable(fmt.Errorf("redis: asking the cluster: %w", err))
	}
	s.line = s.lines[server.Addr]
	if s.line == nil {
		s.line = s.routes.line(server)
		if s.cfg.WaitReplicas > 0 {
			limit := strconv.FormatInt(s.cfg.WaitTimeout.Milliseconds(), 10)
			s.line.replicas, s.line.wait = s.cfg.WaitReplicas, appendCommand(nil, "WAIT", strconv.Itoa(s.cfg.WaitReplicas), limit)
		}
		s.lines[server.Addr] = s.line
	}
	err = s.line.exchange(ctx, append(s.out, s.line.wait...), s.read)
	if err != nil || slices.ContainsFunc(s.outcomes, isElsewhere) {
		s.line.fail()
		s.routes.changed(ctx)
	}
	return err
}

// isElsewhere reports an answer that says that another server is to be asked.
func isElsewhere(err error) bool {
	return server.HasCode(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")
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
	if err != nil || s.line.wait == nil {
		return err
	}
	err = s.line.enough()
	if aborted != nil && errors.Is(err, errReplicas) {
		return nil // nothing was stored that replicas could have
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
		down = s.scoped(postrider.Unavailable(postrider.ErrNotTried))
	}
	for n, i := range s.wave {
		errs[i] = s.scoped(err)
		if err == nil && s.outcomes[n] != nil {
			errs[i] = s.scoped(server.Classify(s.outcomes[n]))
		}
		if errs[i] == nil || errors.Is(errs[i], errWaiting) {
			continue
		}
		if postrider.ScopeOf(errs[i]) == s.scope() {
			down = errs[i]
		}
		if key := msgs[i].OrderKey(); key != "" {
			s.failed[key] = true
		}
	}
	for i := range errs {
		if down != nil && errors.Is(errs[i], errWaiting) && (s.routes.cluster == nil || s.coder.Name(&msgs[i]) == s.stream) {
			errs[i] = down
		}
	}
}

// scope is what an outage of a server is about: in a cluster only some streams.
func (s *sender) scope() postrider.Scope {
	if s.routes.cluster != nil {
		return postrider.ScopeName
	}
	return postrider.ScopeDestination
}

func (s *sender) scoped(err error) error {
	if s.routes.cluster != nil && postrider.ScopeOf(err) == postrider.ScopeDestination {
		return postrider.NameUnavailable(err)
	}
	return err
}
