package webhook

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/broker/webhook/signature"
)

// patience is how long a request waits to be handled: less long than most senders wait for its answer.
const patience = 5 * time.Second

// structured is the type of bodies that hold all of an event, and so are signed together with it.
const structured = "application/cloudevents+json"

// Receiver is an endpoint, an [http.Handler] that hands messages to a handler. It answers 204 when that has returned
// nil. When it has failed, or not begun for 5 s, the answer is 503 and the sender comes again; so a failing message
// holds up its key as long as the sender keeps order. What cannot be verified is answered with 401, what cannot be read
// with 400 or 413: senders do not repeat those. [http.Server.Shutdown] waits for the handlers at work.
//
// The message's topic is the wildcard "name" of the pattern that the Receiver is registered with, if there is one:
//
//	mux.Handle("POST /hooks/{name}", receiver)
//
// A signature covers the ID and the body, not the headers: of a CloudEvent in binary mode TLS alone protects the
// attributes. The ID among them must be the signed one, and it alone identifies the message; the source counts only in
// structured mode, where it is signed too.
type Receiver struct {
	cfg      Config
	handle   postrider.Handler
	coder    *codec.Codec
	verifier *signature.Verifier
	slots    chan struct{}
	turns    sync.Map // from a key to a channel that is closed when a message of the key is no longer handled
}

// NewReceiver returns a receiver, or all that is wrong with its configuration. Secrets are required.
func NewReceiver(cfg Config, handle postrider.Handler) (*Receiver, error) {
	coder, err := cfg.prepare()
	verifier, secretsErr := signature.NewVerifier(cfg.Secrets...)
	if err := errors.Join(err, secretsErr); err != nil {
		return nil, err
	}
	return &Receiver{
		cfg: cfg, handle: handle, coder: coder, verifier: verifier, slots: make(chan struct{}, cfg.InFlight),
	}, nil
}

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m, status, err := r.read(w, req)
	if err != nil {
		http.Error(w, err.Error(), status)
	} else if err := r.handleInTurn(req.Context(), m); err != nil {
		r.cfg.Logger.Warn("webhook: message not handled", "id", m.BrokerID(), "err", err)
		w.Header().Set("Retry-After", "1")
		http.Error(w, "webhook: try again later", http.StatusServiceUnavailable) // why is nobody's business out there
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
}

// read returns a request's message, or the status to refuse it with.
func (r *Receiver) read(w http.ResponseWriter, req *http.Request) (m postrider.Message, status int, err error) {
	if req.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return m, http.StatusMethodNotAllowed, errors.New("webhook: want POST")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, int64(cmp.Or(r.cfg.MaxBody, 1<<20))))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return m, http.StatusRequestEntityTooLarge, err
	} else if err != nil {
		return m, http.StatusRequestTimeout, errors.New("webhook: the body did not arrive")
	}
	if err := r.verifier.Verify(req.Header, time.Now(), body); err != nil {
		return m, http.StatusUnauthorized, err
	}
	p := &codec.Packet{Name: req.PathValue("name"), ID: req.Header.Get(signature.HeaderID), Body: body}
	p.ContentType = req.Header.Get("Content-Type")
	for name, values := range req.Header {
		if !slices.Contains(reserved, name) && name != "Authorization" {
			p.Headers = append(p.Headers, codec.Header{Name: strings.ToLower(name), Value: values[0]})
		}
	}
	m, err = r.coder.Decode(p)
	if err == nil && m.BrokerID() != p.ID {
		err = errors.New("webhook: the event's ID is not the webhook-id, which is signed")
	}
	if mediaType, _, _ := strings.Cut(p.ContentType, ";"); !strings.EqualFold(strings.TrimSpace(mediaType), structured) {
		// Neither headers nor the path are signed: whoever sends a request again with others must not make another message of it.
		m.ID = codec.Identity("", p.ID)
	}
	return m, http.StatusBadRequest, err
}

// handleInTurn calls the handler when there is a slot and no other message of the key is handled: a sender that has
// lost patience comes again early.
func (r *Receiver) handleInTurn(ctx context.Context, m postrider.Message) error {
	waiting, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for key, done := m.OrderKey(), make(chan struct{}); key != ""; {
		other, busy := r.turns.LoadOrStore(key, done)
		if !busy {
			defer func() { r.turns.Delete(key); close(done) }()
			break
		}
		select {
		case <-other.(chan struct{}): //nolint:errcheck // there are channels only
		case <-waiting.Done():
			return errors.New("webhook: another message of its key is being handled")
		}
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
		return intake.Call(ctx, r.handle, m)
	case <-waiting.Done():
		return errors.New("webhook: too many messages are being handled")
	}
}
