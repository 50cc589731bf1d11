package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/redis/internal/server"
)

// A wave is sent in one transaction. Its size is limited because Redis does nothing else meanwhile,
// slows down with long queues, and closes connections that queue too much.
const (
	maxWave  = 125
	maxBytes = 4 << 20
)

// errWaiting is the outcome of a message that has not been sent yet.
var errWaiting = errors.New("redis: not sent yet")

// sender publishes one call at a time over its own connection, in waves.
//
// Within a transaction only its own commands change anything, so messages for one stream are either
// all accepted or all refused: they may share a wave. If a message goes to a different stream than
// the previous one of its key, it waits for the next wave, and so do later messages of its key. In
// a cluster a wave contains one stream only, because a transaction is limited to one slot, and a
// refusal by one node says nothing about the streams of others.
type sender struct {
	cfg    *Config
	coder  *codec.Codec
	routes *routes
	lines  map[string]*line // by server address
	packet codec.Packet

	from   broker.Sender // of the call; no name if nothing is fenced
	ending string        // of the keys of its fences

	wave     []int  // indexes of the messages
	stream   string // of the first message
	line     *line  // to the stream's server
	out      []byte
	outcomes []error           // of the wave's messages
	fences   []string          // of the wave's streams
	guarded  string            // the stream whose fence was added last
	streams  map[string]string // by key in the wave; empty if the key must wait
	failed   map[string]bool   // keys of which nothing more may be sent
}

func (s *sender) publish(ctx context.Context, msgs []postrider.Message) []error {
	s.streams, s.failed = make(map[string]string), make(map[string]bool)
	if s.from, _ = broker.SenderOf(ctx); s.from.Name != "" {
		s.ending = fencesOf(s.from.Name)
	}
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

// fill builds a wave from messages that are not sent yet, and reports whether it contains any.
func (s *sender) fill(msgs []postrider.Message, errs []error) bool {
	s.wave, s.fences, s.guarded = s.wave[:0], s.fences[:0], ""
	s.out = appendCommand(s.out[:0], "MULTI")
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
		if s.cfg.Format == codec.Raw { // raw consists of the ID, the key and the message's own headers; each further field costs Redis time
			s.packet.ContentType = ""
		}
		s.wave, s.out = append(s.wave, i), appendEntry(s.out, &s.packet)
		s.guard(s.packet.Name)
	}
	s.out = appendCommand(s.out, "EXEC")
	return len(s.wave) > 0
}

// fits reports whether a message may join the wave. If not, later messages of its key may not
// either.
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

// guard makes the wave depend on the fence of a stream.
func (s *sender) guard(stream string) {
	if s.from.Name == "" || len(s.fences) > 0 && stream == s.guarded {
		return
	}
	s.guarded = stream
	if fence := fenceKey(stream, s.ending, s.cfg.Cluster); fence != "" && !slices.Contains(s.fences, fence) {
		s.fences = append(s.fences, fence)
	}
}

// exchange sends the wave to the server of its streams and reads the answers.
func (s *sender) exchange(ctx context.Context) error {
	node, err := s.routes.primary(ctx, s.stream)
	if err != nil {
		s.routes.changed(ctx)
		return postrider.Unavailable(fmt.Errorf("redis: asking the cluster: %w", err))
	}
	server := node.Options()
	s.line = s.lines[server.Addr]
	if s.line == nil {
		s.line = s.routes.line(server)
		if s.cfg.WaitReplicas > 0 {
			limit := strconv.FormatInt(s.cfg.WaitTimeout.Milliseconds(), 10)
			s.line.replicas, s.line.wait = s.cfg.WaitReplicas, appendCommand(nil, "WAIT", strconv.Itoa(s.cfg.WaitReplicas), limit)
		}
		s.lines[server.Addr] = s.line
	}
	s.outcomes = append(s.outcomes[:0], make([]error, len(s.wave))...)
	err = s.send(ctx)
	if err != nil || slices.ContainsFunc(s.outcomes, isElsewhere) {
		s.line.fail()
		s.routes.changed(ctx)
	}
	return err
}

// send sends the wave unless it is fenced off. With its answers it reads the terms of the fences
// for the next wave, which saves that one a round trip.
func (s *sender) send(ctx context.Context) error {
	if err := s.line.open(ctx); err != nil {
		return err
	}
	if err := s.line.watch(ctx, s.fences); err != nil {
		return err
	}
	for _, fence := range s.fences {
		if s.line.watched[fence] > s.from.Term {
			fill(s.outcomes, errFenced)
			return nil
		}
	}
	s.out = append(s.out, s.line.wait...)
	s.out = appendWatch(s.out, s.fences)
	return s.line.run(ctx, s.out, s.read)
}

// isElsewhere reports whether an answer redirects to another server.
func isElsewhere(err error) bool {
	return server.HasCode(err, "READONLY", "MASTERDOWN", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN")
}

// read reads the answers to a wave. An error means that its outcome is unknown.
func (s *sender) read() error {
	_, err := s.line.reply()
	if err == nil {
		err = s.readOutcomes() // whether they were queued
	}
	if err != nil {
		return err
	}
	n, aborted := s.line.reply()
	s.line.watched = nil
	nothing := aborted != nil || n < 0 // is stored
	switch {
	case aborted != nil:
		err = s.abort(aborted)
	case nothing:
		fill(s.outcomes, errWaiting) // a fence has changed
	default:
		err = s.readOutcomes()
	}
	if err == nil && s.line.wait != nil {
		err = s.line.enough()
		if nothing && errors.Is(err, errReplicas) {
			err = nil // nothing to replicate
		}
	}
	if err == nil && len(s.fences) > 0 && s.line.readWatched(s.fences) != nil {
		s.line.close() // the outcomes are known
	}
	return err
}

func fill(outcomes []error, with error) {
	for n := range outcomes {
		outcomes[n] = with
	}
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

// abort handles a transaction that stored nothing. If some of its messages were refused, the others
// are sent again without them. If none was, the reason applies to all.
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

// settle records the outcome of each message of the wave; err applies to all of them.
func (s *sender) settle(msgs []postrider.Message, errs []error, err error) {
	var down error // why nothing more may be tried
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

// scope returns the scope of a server outage: in a cluster it affects some streams only.
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
