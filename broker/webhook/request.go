package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/broker/webhook/signature"
)

// reserved lists headers that belong to the protocol or to the publisher. A message with one of
// them is refused: the header would arrive changed, or affect the HTTP request itself.
var reserved = []string{
	signature.HeaderID, signature.HeaderTimestamp, signature.HeaderSignature, "Accept-Encoding", "Connection",
	"Content-Length", "Content-Type", "Cookie", "Expect", "Host", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
}

// tokenCharacters are the characters that HTTP allows in a header name.
const tokenCharacters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ!#$%&'*+-.^_`|~"

// isFieldValue reports whether HTTP carries s unchanged as a header value.
func isFieldValue(s string) bool {
	isControl := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	return !strings.ContainsFunc(s, isControl) && strings.Trim(s, " \t") == s
}

// request builds the request for a message, including the login headers. Its errors concern the
// message.
func (p *Publisher) request(ctx context.Context, m *postrider.Message, headers http.Header) (*http.Request, error) {
	packet := codec.Packet{Headers: make([]codec.Header, 0, 16)}
	p.coder.Encode(m, &packet)
	if p.cfg.MaxBody > 0 && len(packet.Body) > p.cfg.MaxBody {
		return nil, fmt.Errorf("webhook: the body has %d bytes, more than MaxBody (%d)", len(packet.Body), p.cfg.MaxBody)
	}
	target, err := p.target(packet.Name)
	if err != nil {
		return nil, err
	}
	// Clone the body: the transport may still read it after Publish has returned, when the caller
	// owns the message again.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(bytes.Clone(packet.Body)))
	if err != nil {
		return nil, err
	}
	req.Header = headers
	if user := p.url.User; user != nil {
		password, _ := user.Password()
		req.SetBasicAuth(user.Username(), password)
	}
	for _, h := range packet.Headers {
		name := http.CanonicalHeaderKey(h.Name)
		switch {
		case h.Name == "" || strings.Trim(h.Name, tokenCharacters) != "" || !isFieldValue(h.Value):
			return nil, fmt.Errorf("webhook: header %q: its name is no token, or its value no plain text of one line", name)
		case slices.Contains(reserved, name):
			return nil, fmt.Errorf("webhook: header %q is not the message's to set", name)
		case req.Header[name] != nil:
			return nil, fmt.Errorf("webhook: header %q is there twice: HTTP does not tell upper from lower case", name)
		}
		req.Header[name] = []string{h.Value}
	}
	if !isFieldValue(packet.ID) || !isFieldValue(packet.ContentType) {
		return nil, errors.New("webhook: the ID or the content type is no plain text of one line")
	}
	p.signer.Sign(req.Header, packet.ID, time.Now(), packet.Body)
	req.Header.Set("User-Agent", "postrider")
	if packet.ContentType != "" {
		req.Header.Set("Content-Type", packet.ContentType)
	}
	return req, nil
}

// target returns the URL for a name.
func (p *Publisher) target(name string) (string, error) {
	if !p.named {
		return p.cfg.URL, nil
	}
	climbs := func(part string) bool { return part == "." || part == ".." }
	if name == "" || strings.Contains(name, `\`) || slices.ContainsFunc(strings.Split(name, "/"), climbs) {
		return "", fmt.Errorf("webhook: name %q cannot stand in a URL's path", name)
	}
	return strings.ReplaceAll(p.cfg.URL, namePlace, url.PathEscape(name)), nil
}
