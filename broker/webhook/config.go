package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
)

const namePlace = "{name}"

// dialect is the CloudEvents HTTP binding. The ID is sent in the header webhook-id.
var dialect = codec.Dialect{Prefix: "ce-", Percent: true, ByType: true}

// Config configures a [Publisher], which requires URL, or a [Receiver], which requires Secrets.
type Config struct {
	// URL is the endpoint, http or https. "{name}" in its path is replaced by the message's name.
	URL string
	// Secrets sign and verify messages; see package signature. Defaults to none: messages are not
	// signed.
	Secrets []string `option:"secrets" kind:"secret" doc:"Signing secrets, whsec_ or whsk_, all of them are used."`
	// Timeout limits the duration of one request. Defaults to 10 s.
	Timeout time.Duration `option:"timeout" default:"10s" doc:"How long one request may take."`
	// Parallel is the maximum number of concurrent requests. Defaults to 16.
	Parallel int `option:"parallel" default:"16" doc:"Most requests under way."`
	// Rate is the maximum number of requests per second. Defaults to 0: no limit.
	Rate int `option:"rate" default:"0" doc:"Most requests a second; 0 means no limit."`
	// MaxBody is the maximum body size in bytes; larger bodies are refused. Defaults to 0: no
	// limit, and 1 MiB for a receiver.
	MaxBody int `option:"max_body" default:"0" doc:"Largest body in bytes; 0 means no limit."`
	// AllowPrivate lists networks that may be reached although they are not public, such as
	// 10.1.0.0/16. Defaults to none.
	AllowPrivate []string `option:"allow_private" doc:"Networks that may be reached though they are not public."`
	// AllowLoopback allows connections to 127.0.0.0/8 and ::1. Defaults to false.
	AllowLoopback bool `option:"allow_loopback" default:"false" doc:"Whether this machine itself may be reached."`
	// Format is the message format; a receiver always recognises CloudEvents. Defaults to
	// [codec.CloudEvents].
	Format codec.Format `option:"format" default:"cloudevents"`
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`
	// InFlight is the maximum number of messages that a receiver handles concurrently. Defaults to
	// 64.
	InFlight int `option:"in_flight" default:"64"`
	// HeadersFile holds headers for every request, such as an API key, one "Name: value" per line.
	// It is reread when it changes. Defaults to none.
	HeadersFile string `option:"headers_file" doc:"File with headers for every request, one 'Name: value' a line; read again when it changes."`
	// TokenFile holds a bearer token and is read for each request. Alternatively, TokenURL,
	// ClientID, SecretFile and Scope obtain one from an OAuth 2 provider. Defaults to none.
	TokenFile  string `option:"token_file" doc:"File with a bearer token, read for each request."`
	TokenURL   string `option:"token_url" doc:"Token endpoint of an OAuth 2 provider, for a bearer token; instead of token_file."`
	ClientID   string `option:"client_id" doc:"Who we are to the provider."`
	SecretFile string `option:"client_secret_file" doc:"File with the client's secret, read each time a token is asked for."`
	Scope      string `option:"scope" doc:"What the token is to be good for."`
	// Proxy is the address of an HTTP proxy for all requests. The proxy resolves the endpoint's
	// name, so it must restrict which addresses may be reached. Defaults to none; the environment
	// is ignored.
	Proxy string `option:"proxy" kind:"secret" doc:"Address of an HTTP proxy that all requests go through; which addresses may be reached is then up to it."`
	// Transport sends the requests in place of the built-in transport. It replaces Dial, TLS, Proxy
	// and the check of addresses. Redirects are never followed. Defaults to none.
	Transport http.RoundTripper
	// TLS holds the endpoint's certificate authority and the client's certificate. Defaults to the
	// system's authorities.
	TLS *tls.Config
	// Dial replaces how connections are opened, and with it the check of addresses. Defaults to a
	// [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger receives outages and handler failures. Defaults to [slog.Default].
	Logger *slog.Logger
}

// prepare sets the defaults and reports mistakes that concern publisher and receiver alike.
func (c *Config) prepare() (*codec.Codec, error) {
	broker.SetDefaults(c)
	coder, err := codec.NewCodec(c.Format, c.Source, dialect)
	return coder, errors.Join(append(broker.Negative(*c), err)...)
}

// parseURL parses and checks the URL. Its error never contains the URL, which may hold a password.
func (c *Config) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("webhook: URL: want an address such as https://example.com/hooks")
	case u.Fragment != "" || strings.Count(c.URL, namePlace) != strings.Count(u.Path, namePlace):
		return nil, fmt.Errorf("webhook: URL: has a fragment (#), or %s elsewhere than in its path", namePlace)
	case c.Transport != nil && (c.TLS != nil || c.Dial != nil || c.Proxy != ""):
		return nil, errors.New("webhook: Transport is set, and so is TLS, Dial or Proxy: these are the transport's")
	case c.TLS != nil && c.TLS.InsecureSkipVerify:
		return nil, errors.New("webhook: TLS: InsecureSkipVerify is set: give RootCAs the endpoint's authority instead")
	}
	return u, nil
}

// Inspect implements [broker.Inspector]. An endpoint cannot be queried without sending it a
// message, so the result is based on the configuration alone.
func (p *Publisher) Inspect(context.Context, []string) (broker.Inspection, error) {
	result := broker.Inspection{
		Confirmed: "The endpoint has answered the message's request with a 2xx status. What it has done is up to it.",
		Settings:  []broker.Setting{{Name: "endpoint", Value: p.url.Scheme + "://" + p.url.Host}},
	}
	warn := func(danger, remedy string) {
		result.Warnings = append(result.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
	}
	host := p.url.Hostname()
	if addr, _ := netip.ParseAddr(host); p.url.Scheme == "http" && host != "localhost" && !addr.IsLoopback() {
		warn("Messages travel over plain HTTP: others on the network can read them and forge answers.", "Use an https URL.")
	}
	if len(p.cfg.Secrets) == 0 {
		warn("Messages are not signed: the endpoint cannot tell them from forged ones.",
			`Set secrets to one such as "whsec_" and the output of: openssl rand -base64 32`)
	}
	return result, nil
}

// parseProxy returns the proxy's address, or nil if there is none. Its error never contains the
// address.
func (c *Config) parseProxy() (*url.URL, error) {
	if c.Proxy == "" {
		return nil, nil
	}
	u, err := url.Parse(c.Proxy)
	if err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("webhook: proxy: want an address such as http://proxy.internal:3128")
	}
	return u, nil
}
