// Package token provides bearer tokens for brokers and webhooks, from a file that is kept up to
// date externally, or from an OAuth 2 provider with client credentials (RFC 6749, 4.4).
package token

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/broker"
)

// Config selects the source of tokens: File alone, or URL, ClientID and SecretFile of a provider.
type Config struct {
	// File holds a token. It is read for each call of Token.
	File string
	// URL is the provider's token endpoint, such as https://id.example.com/realms/shop/protocol/openid-connect/token.
	URL string
	// ClientID identifies us to the provider.
	ClientID string
	// SecretFile holds the client's secret. It is read for each token request.
	SecretFile string
	// Scope is the requested scope. Defaults to the provider's default.
	Scope string
	// Client sends the token requests. Defaults to one with a timeout of 10 s that follows no
	// redirects.
	Client *http.Client
}

// IsSet reports whether any field that selects a source is set.
func (c *Config) IsSet() bool {
	return c.File != "" || c.URL != "" || c.ClientID != "" || c.SecretFile != "" || c.Scope != ""
}

// Check reports contradictory settings, under their names in configuration files.
func (c *Config) Check() error {
	var errs []error
	if c.File != "" && c.URL != "" {
		errs = append(errs, errors.New("token_file and token_url are set: want one of them"))
	}
	if c.URL != "" {
		if u, err := url.Parse(c.URL); err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
			errs = append(errs, errors.New("token_url: want an address such as https://id.example.com/token"))
		} else if u.Scheme == "http" && !isLoopback(u.Hostname()) {
			errs = append(errs, errors.New("token_url says http, and a secret would cross the network readable: want https"))
		}
		if c.ClientID == "" || c.SecretFile == "" {
			errs = append(errs, errors.New("token_url is set, but client_id or client_secret_file is not"))
		}
	} else if c.ClientID != "" || c.SecretFile != "" || c.Scope != "" {
		errs = append(errs, errors.New("client_id, client_secret_file or scope is set, but token_url is not"))
	}
	return errors.Join(errs...)
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// Source provides tokens. It is safe for concurrent use.
type Source struct {
	cfg Config

	mu    sync.Mutex
	token string
	until time.Time // when to request the next token
}

// NewSource returns a source. It reads no file and sends no request.
func NewSource(cfg Config) (*Source, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	if cfg.Client == nil {
		cfg.Client = &http.Client{
			Timeout:       10 * time.Second,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	return &Source{cfg: cfg}, nil
}

// Token returns a valid token. A provider's token has at least a fifth of its lifetime left.
func (s *Source) Token(ctx context.Context) (string, error) {
	if s.cfg.File != "" {
		return readSecret("token_file", s.cfg.File)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.token != "" && time.Now().Before(s.until) {
		return s.token, nil
	}
	asked := time.Now()
	token, life, err := s.ask(ctx)
	if err != nil {
		return "", err
	}
	s.token, s.until = token, asked.Add(life*4/5)
	return token, nil
}

// Forget drops the current token after it was refused: it may have been revoked.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

const maxAnswer = 1 << 20

// ask requests a token and its lifetime from the provider. Errors contain nothing of the secret,
// and of the answer only the error code that the standard defines.
func (s *Source) ask(ctx context.Context) (token string, life time.Duration, err error) {
	secret, err := readSecret("client_secret_file", s.cfg.SecretFile)
	if err != nil {
		return "", 0, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if s.cfg.Scope != "" {
		form.Set("scope", s.cfg.Scope)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.cfg.URL, strings.NewReader(form.Encode()))
	if err != nil {
		return "", 0, errors.New("token: token_url is not an address")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.SetBasicAuth(url.QueryEscape(s.cfg.ClientID), url.QueryEscape(secret))
	answer, err := s.cfg.Client.Do(req)
	if err != nil {
		return "", 0, fmt.Errorf("token: the provider cannot be reached: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	var said struct {
		Token   string `json:"access_token"`
		Type    string `json:"token_type"`
		Expires int64  `json:"expires_in"`
		Error   string `json:"error"`
	}
	err = json.NewDecoder(io.LimitReader(answer.Body, maxAnswer)).Decode(&said)
	switch {
	case answer.StatusCode != http.StatusOK:
		return "", 0, fmt.Errorf("token: the provider says %d %.100s", answer.StatusCode, cmp.Or(said.Error, http.StatusText(answer.StatusCode)))
	case err != nil || said.Token == "":
		return "", 0, errors.New("token: the provider's answer has no access_token")
	case !strings.EqualFold(said.Type, "bearer"):
		return "", 0, fmt.Errorf("token: the provider gives tokens of type %.50q: want bearer", said.Type)
	}
	return said.Token, time.Duration(max(said.Expires, 0)) * time.Second, nil
}

func readSecret(option, file string) (string, error) {
	secret, err := broker.ReadSecret(option, file)
	switch {
	case err != nil:
		return "", fmt.Errorf("token: %w", err)
	case secret == "":
		return "", fmt.Errorf("token: %s: %s is empty", option, file)
	}
	return secret, nil
}
