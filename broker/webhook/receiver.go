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

// waitTimeout is how long a request waits to be handled. It is shorter than most senders' timeout.
const waitTimeout = 5 * time.Second

// structured is the content type of bodies that hold a complete event, all of which is signed.
const structured = "application/cloudevents+json"

// Receiver is an endpoint: an [http.Handler] that passes messages to a handler. It answers
//   - 204 when the handler has succeeded;
//   - 503 when it has failed, or has not started within 5 s: the sender retries, so a failing
//     message blocks its key if the sender keeps order;
//   - 401 if the request cannot be verified, and 400 or 413 if it cannot be read: senders do not
//     retry these.
//
// [http.Server.Shutdown] waits for running handlers.
//
// The message's topic is the wildcard "name" of the pattern that the Receiver is registered with,
// if any:
//
//	mux.Handle("POST /hooks/{name}", receiver)
//
// A signature covers the ID and the body, not the headers: for a CloudEvent in binary mode, only
// TLS protects the attributes. The event's ID must be the signed ID, which alone identifies the
// message. The source is considered only in structured mode, where it is signed too.
type Receiver struct {
	cfg      Config
	handle   postrider.Handler
	coder    *codec.Codec
	verifier *signature.Verifier
	slots    chan struct{}
	turns    sync.Map // key → channel that is closed when the message of the key being handled is finished
}

// NewReceiver returns a receiver, or all mistakes in its configuration. Secrets are required.
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
		http.Error(w, "webhook: try again later", http.StatusServiceUnavailable) // do not reveal the reason to the sender
	} else {
		w.WriteHeader(http.StatusNoContent)
	}
}

// read returns a request's message, or the status with which to refuse it.
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
		// Neither the headers nor the path are signed: a replayed request with other headers must
		// not become another message.
		m.ID = codec.Identity("", p.ID)
	}
	return m, http.StatusBadRequest, err
}

// handleInTurn calls the handler when there is a slot and no other message of the key is being
// handled: a sender that has timed out may resend early.
func (r *Receiver) handleInTurn(ctx context.Context, m postrider.Message) error {
	waiting, cancel := context.WithTimeout(ctx, waitTimeout)
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
