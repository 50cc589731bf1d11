package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/wire"
)

const namePlace = "{name}"

// dialect is the HTTP binding of CloudEvents. The ID has a place of its own: the header webhook-id.
var dialect = wire.Dialect{Prefix: "ce-", Percent: true, ByType: true}

// Config tells a [Publisher], which needs URL, where to post, and a [Receiver], which needs Secrets, what to accept.
type Config struct {
	// URL is the endpoint, http or https. "{name}" in its path is replaced by the name that the message goes to.
	URL string
	// Secrets sign messages and verify them; see package signature. Defaults to none: messages are not signed.
	Secrets []string `option:"secrets" kind:"secret" doc:"Signing secrets, whsec_ or whsk_, all of them are used."`
	// Timeout is how long one request may take. Defaults to 10 s.
	Timeout time.Duration `option:"timeout" default:"10s" doc:"How long one request may take."`
	// Parallel is the largest number of requests under way. Defaults to 16.
	Parallel int `option:"parallel" default:"16" doc:"Most requests under way."`
	// Rate is the largest number of requests a second. Defaults to 0: no limit.
	Rate int `option:"rate" default:"0" doc:"Most requests a second; 0 means no limit."`
	// MaxBody is the largest body in bytes; larger ones are refused. Defaults to 0: no limit, for a receiver 1 MiB.
	MaxBody int `option:"max_body" default:"0" doc:"Largest body in bytes; 0 means no limit."`
	// AllowPrivate are networks that may be reached though they are not public, such as 10.1.0.0/16. Defaults to none.
	AllowPrivate []string `option:"allow_private" doc:"Networks that may be reached though they are not public."`
	// AllowLoopback allows 127.0.0.0/8 and ::1. Defaults to false.
	AllowLoopback bool `option:"allow_loopback" default:"false" doc:"Whether this machine itself may be reached."`
	// Format is how a message is laid out; a receiver recognises CloudEvents anyway. Defaults to [wire.CloudEvents].
	Format wire.Format `option:"format" default:"cloudevents"`
	// Source is the CloudEvents attribute of that name. Defaults to "postrider".
	Source string `option:"source"`
	// InFlight is the largest number of messages that a receiver handles at a time. Defaults to 64.
	InFlight int `option:"in_flight" default:"64"`
	// TLS holds the endpoint's authority and the client's certificate. Defaults to the system's authorities.
	TLS *tls.Config
	// Dial replaces the way to open connections, and with it the check of addresses. Defaults to a [net.Dialer].
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Logger is told of outages and of failing handlers. Defaults to [slog.Default].
	Logger *slog.Logger
}

// prepare sets the defaults and reports what is wrong for publisher and receiver alike.
func (c *Config) prepare() (*wire.Codec, error) {
	broker.SetDefaults(c)
	codec, err := wire.NewCodec(c.Format, c.Source, dialect)
	return codec, errors.Join(append(broker.Negative(*c), err)...)
}

// parseURL never shows the URL, which may hold a password.
func (c *Config) parseURL() (*url.URL, error) {
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, errors.New("webhook: URL: want an address such as https://example.com/hooks")
	case u.Fragment != "" || strings.Count(c.URL, namePlace) != strings.Count(u.Path, namePlace):
		return nil, fmt.Errorf("webhook: URL: has a fragment (#), or %s elsewhere than in its path", namePlace)
	case c.TLS != nil && c.TLS.InsecureSkipVerify:
		return nil, errors.New("webhook: TLS: InsecureSkipVerify is set: give RootCAs the endpoint's authority instead")
	}
	return u, nil
}

// Inspect implements [postrider.Inspector]. An endpoint cannot be asked anything without sending it something: this
// says only what the configuration tells.
func (p *Publisher) Inspect(context.Context, []string) (postrider.Inspection, error) {
	result := postrider.Inspection{
		Confirmed: "The endpoint has answered the message's request with a 2xx status. What it has done is up to it.",
		Settings:  []postrider.Setting{{Name: "endpoint", Value: p.url.Scheme + "://" + p.url.Host}},
	}
	warn := func(danger, remedy string) {
		result.Warnings = append(result.Warnings, postrider.Warning{Danger: danger, Remedy: remedy})
	}
	host := p.url.Hostname()
	if addr, _ := netip.ParseAddr(host); p.url.Scheme == "http" && host != "localhost" && !addr.IsLoopback() {
		warn("Messages travel over plain HTTP: anybody on the way can read them, and answer instead.", "Use an https URL.")
	}
	if len(p.cfg.Secrets) == 0 {
		warn("Messages are not signed: the endpoint cannot tell them from forged ones.",
			`Set secrets to one such as "whsec_" and the output of: openssl rand -base64 32`)
	}
	return result, nil
}
