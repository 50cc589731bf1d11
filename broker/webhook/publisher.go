package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/webhook/signature"
)

// Publisher posts messages to an endpoint, one per request. It is safe for concurrent use.
type Publisher struct {
	cfg       Config
	coder     *codec.Codec
	signer    *signature.Signer
	url       *url.URL
	dialer    *net.Dialer
	transport http.RoundTripper
	login     *login
	closing   context.Context
	close     context.CancelFunc
	slots     chan struct{}
	named     bool // the URL contains the message's name
	down      atomic.Bool

	mu     sync.Mutex
	next   time.Time               // earliest time of the next request, if Rate is set
	pauses map[string]*StatusError // the answer that requested the latest delay, by name
}

// NewPublisher returns a publisher, or all mistakes in its configuration. It does not connect.
func NewPublisher(cfg Config) (*Publisher, error) {
	coder, err := cfg.prepare()
	address, urlErr := cfg.parseURL()
	signer, signerErr := signature.NewSigner(cfg.Secrets...)
	guard, guardErr := newGuard(&cfg)
	login, loginErr := newLogin(&cfg)
	proxy, proxyErr := cfg.parseProxy()
	if err := errors.Join(err, urlErr, signerErr, guardErr, loginErr, proxyErr); err != nil {
		return nil, err
	}
	p := &Publisher{cfg: cfg, coder: coder, signer: signer, url: address, login: login, slots: make(chan struct{}, cfg.Parallel)}
	p.named, p.pauses = strings.Contains(cfg.URL, namePlace), make(map[string]*StatusError)
	p.closing, p.close = context.WithCancel(context.Background())
	if cfg.Transport != nil {
		p.transport = cfg.Transport
		return p, nil
	}
	p.dialer = &net.Dialer{Timeout: cfg.Timeout}
	if proxy == nil {
		p.dialer.ControlContext = guard.control
	}
	p.transport = &http.Transport{
		Proxy:                  http.ProxyURL(proxy), // nil means none, ignoring the environment
		DialContext:            p.dial,
		TLSClientConfig:        cfg.TLS.Clone(),
		TLSHandshakeTimeout:    cfg.Timeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: cfg.Timeout, PingTimeout: cfg.Timeout},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    cfg.Parallel,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return p, nil
}

// dial also ends when the publisher is closed: the transport continues dialling after the request
// that needed the connection has ended.
func (p *Publisher) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.closing, cancel)() //nolint:contextcheck // it is the end of the publisher
	if p.cfg.Dial != nil {
		return p.cfg.Dial(ctx, network, address)
	}
	return p.dialer.DialContext(ctx, network, address)
}

// Publish implements [postrider.Publisher]. It sends messages of one key in sequence, and different
// keys concurrently.
func (p *Publisher) Publish(ctx context.Context, msgs []postrider.Message) []error {
	return broker.Each(ctx, msgs, p.cfg.Parallel, p.send)
}

// KeepsOrder returns true: after a failed message, later messages of its key are not sent.
func (p *Publisher) KeepsOrder() bool { return true }

// NameOf returns the value of {name} in the URL. Without {name} all messages go to one endpoint,
// and NameOf returns "".
func (p *Publisher) NameOf(m *postrider.Message) string {
	if !p.named {
		return ""
	}
	return p.coder.Name(m)
}

// Close implements [postrider.Publisher].
func (p *Publisher) Close() error {
	p.close()
	if t, ok := p.transport.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
	return nil
}

func (p *Publisher) send(ctx context.Context, m *postrider.Message) error {
	select {
	case p.slots <- struct{}{}:
		defer func() { <-p.slots }()
	case <-ctx.Done():
		return postrider.Unavailable(ctx.Err())
	}
	name := p.NameOf(m)
	if err := p.wait(ctx, name); err != nil {
		return err
	}
	caller := ctx
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	var sent atomic.Bool // the endpoint has received at least the request's headers
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	if p.cfg.Transport != nil {
		sent.Store(true) // a custom transport may not report it
	}
	headers := http.Header{}
	if err := p.login.add(ctx, headers); err != nil {
		return p.note(name, postrider.Unavailable(err))
	}
	req, err := p.request(ctx, m, headers)
	if err != nil {
		return postrider.Permanent(err)
	}
	resp, err := p.transport.RoundTrip(req)
	switch {
	case err != nil && sent.Load():
		return fmt.Errorf("webhook: no answer: %w", err)
	case err != nil && caller.Err() != nil:
		return postrider.Unavailable(caller.Err())
	case err != nil:
		return p.note(name, postrider.Unavailable(fmt.Errorf("webhook: not sent: %w", err)))
	}
	// Read a little of the body, for a limited time, only so that the connection can be reused.
	defer time.AfterFunc(250*time.Millisecond, cancel).Stop()
	if resp.StatusCode >= 200 { // otherwise the body is an endless connection
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusUnauthorized {
		p.login.refused()
	}
	return p.note(name, p.classify(resp))
}

// wait waits until a request may be sent. It returns an error if the endpoint has requested a
// delay.
func (p *Publisher) wait(ctx context.Context, name string) error {
	p.mu.Lock()
	pause := p.pauses[name]
	p.mu.Unlock()
	if pause != nil && pause.RetryAfter() > 0 {
		return p.refused(fmt.Errorf("webhook: not sent, a pause is asked for: %w", pause))
	}
	if p.cfg.Rate == 0 {
		return nil
	}
	p.mu.Lock()
	wait := max(0, time.Until(p.next))
	p.next = time.Now().Add(wait + time.Second/time.Duration(p.cfg.Rate))
	p.mu.Unlock()
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return postrider.Unavailable(ctx.Err())
	}
}
