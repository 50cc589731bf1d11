// Package token gets the tokens that brokers and webhooks let us in with: from a file that somebody else keeps fresh, or from an OAuth 2
// provider, by client credentials (RFC 6749, 4.4).
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

// Config says where tokens come from: File alone, or the three of a provider.
type Config struct {
	// File has a token. It is read each time one is needed.
	File string
	// URL is the provider's token endpoint, such as https://id.example.com/realms/shop/protocol/openid-connect/token.
	URL string
	// ClientID is who we are to the provider.
	ClientID string
	// SecretFile has the client's secret. It is read each time a token is asked for.
	SecretFile string
	// Scope is what the token is to be good for. Defaults to what the provider gives by itself.
	Scope string
	// Client asks the provider. Defaults to one with a time-out of 10 s that follows no redirect.
	Client *http.Client
}

// IsSet reports whether any token was asked for.
func (c *Config) IsSet() bool {
	return c.File != "" || c.URL != "" || c.ClientID != "" || c.SecretFile != "" || c.Scope != ""
}

// Check reports settings that contradict each other, in the words of a configuration file.
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

// Source hands out tokens. It is safe for concurrent use.
type Source struct {
	cfg Config

	mu    sync.Mutex
	token string
	until time.Time // when the next one is asked for
}

// NewSource returns a source. It reads and asks nothing.
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

// Token returns a token that is good for a while: of a provider's, at least a fifth of its life is left.
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

// Forget drops a token that was refused: it may have been withdrawn.
func (s *Source) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = ""
}

const maxAnswer = 1 << 20

// ask gets a token of the provider, and for how long it is good. Errors hold nothing of the secret, nor of the answer but for the error that the
// standard defines.
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
	defer answer.Body.Close()
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
