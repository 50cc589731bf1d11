package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/broker/token"
)

// login adds credentials to each request. Its files are reread when they change, so that secrets
// can be rotated without a restart.
type login struct {
	tokens *token.Source // nil without a bearer token

	file    string // headers file; empty if there is none
	mu      sync.Mutex
	changed time.Time // modification time of the file that headers were read from
	headers http.Header
}

func newLogin(c *Config) (*login, error) {
	l := &login{file: c.HeadersFile}
	var errs []error
	tokens := token.Config{File: c.TokenFile, URL: c.TokenURL, ClientID: c.ClientID, SecretFile: c.SecretFile, Scope: c.Scope}
	if tokens.IsSet() {
		source, err := token.NewSource(tokens)
		l.tokens, errs = source, append(errs, err)
		if u, err := url.Parse(c.URL); err == nil && u.User != nil {
			errs = append(errs, errors.New("URL has a user, and token_file or token_url is set: want one of them"))
		}
	}
	if l.file != "" {
		headers, err := l.read()
		errs = append(errs, err)
		if l.tokens != nil && headers["Authorization"] != nil {
			errs = append(errs, errors.New("headers_file has Authorization, and token_file or token_url is set: want one of them"))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return l, nil
}

// add sets the headers of a request. Its errors do not concern the message, and contain no header
// value.
func (l *login) add(ctx context.Context, h http.Header) error {
	if l.file != "" {
		headers, err := l.read()
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		for name, values := range headers {
			h[name] = values
		}
	}
	if l.tokens != nil {
		text, err := l.tokens.Token(ctx)
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		h.Set("Authorization", "Bearer "+text)
	}
	return nil
}

// refused drops the current token after a request was rejected.
func (l *login) refused() {
	if l.tokens != nil {
		l.tokens.Forget()
	}
}

const maxHeadersFile = 64 << 10

// read returns the headers in the file.
func (l *login) read() (http.Header, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	info, err := os.Stat(l.file)
	if err != nil {
		return nil, fmt.Errorf("headers_file: %w", err)
	}
	if l.headers != nil && info.ModTime().Equal(l.changed) {
		return l.headers, nil
	}
	if info.Size() > maxHeadersFile {
		return nil, fmt.Errorf("headers_file: %s has %d bytes, more than %d", l.file, info.Size(), maxHeadersFile)
	}
	text, err := os.ReadFile(l.file)
	if err != nil {
		return nil, fmt.Errorf("headers_file: %w", err)
	}
	headers := http.Header{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		name, value = http.CanonicalHeaderKey(strings.TrimSpace(name)), strings.TrimSpace(value)
		switch {
		case name == "" || strings.Trim(name, tokenCharacters) != "" || value == "" || !isFieldValue(value):
			return nil, fmt.Errorf("headers_file: line %d is not like Name: value", i+1)
		case slices.Contains(reserved, name):
			return nil, fmt.Errorf("headers_file: line %d: %s cannot be set", i+1, name)
		}
		headers[name] = []string{value}
	}
	l.headers, l.changed = headers, info.ModTime()
	return headers, nil
}
