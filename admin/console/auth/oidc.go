package auth

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
)

const (
	providerTimeout = 10 * time.Second
	providerPause   = 2 * time.Second // between two attempts to discover it
	clockSkew       = time.Minute     // tolerated difference to the provider's clock
)

var (
	errNonce = errors.New("the ID token belongs to another sign-in")
	errParty = errors.New("the ID token was issued to another client")
)

// provider is an OIDC provider, which may not be reachable yet.
type provider struct {
	cfg    OIDC
	grant  string // identifies the settings that grant roles: sessions end when they change
	client *http.Client
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	found  *oidc.Provider
	failed time.Time
	err    error
}

func newProvider(cfg OIDC, log *slog.Logger) *provider {
	if len(cfg.Scopes) == 0 {
		cfg.Scopes = []string{oidc.ScopeOpenID, "profile", "email"}
	}
	cfg.RolesClaim = cmp.Or(cfg.RolesClaim, "groups")
	rules, _ := json.Marshal([]any{cfg.Issuer, cfg.ClientID, cfg.RolesClaim, cfg.NameClaim, cfg.Roles}) // strings always marshal
	hash := sha256.Sum256(rules)
	p := &provider{
		cfg: cfg, grant: hex.EncodeToString(hash[:8]), log: log,
		client: &http.Client{Timeout: providerTimeout}, now: time.Now,
	}
	// Discover the provider now, so that the log reports an error before the first sign-in.
	go func() { _, _ = p.discover(context.Background()) }()
	return p
}

// discover returns the provider. It tries again until it has discovered its endpoints.
func (p *provider) discover(ctx context.Context) (*oidc.Provider, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.found != nil {
		return p.found, nil
	}
	if time.Since(p.failed) < providerPause {
		return nil, p.err
	}
	// Ignore the cancellation of this request: others wait for the same result.
	ctx, cancel := context.WithTimeout(p.with(context.WithoutCancel(ctx)), providerTimeout)
	defer cancel()
	found, err := oidc.NewProvider(ctx, p.cfg.Issuer)
	if err != nil {
		p.failed, p.err = time.Now(), fmt.Errorf("auth: OIDC provider %s: %w", p.cfg.Issuer, err)
		p.log.WarnContext(ctx, "console: OIDC sign-in is not available: the provider does not answer", "issuer", p.cfg.Issuer,
			"error", err)
		return nil, p.err
	}
	p.found = found
	return found, nil
}

func (p *provider) with(ctx context.Context) context.Context {
	return oidc.ClientContext(ctx, p.client)
}

func (p *provider) oauth(at *oidc.Provider) *oauth2.Config {
	return &oauth2.Config{
		ClientID: p.cfg.ClientID, ClientSecret: p.cfg.ClientSecret, RedirectURL: p.cfg.RedirectURL,
		Scopes: p.cfg.Scopes, Endpoint: at.Endpoint(),
	}
}

// redeem exchanges a code for the claims about the user.
func (p *provider) redeem(ctx context.Context, code string, f flow) (claims, error) {
	at, err := p.discover(ctx)
	if err != nil {
		return nil, err
	}
	ctx = p.with(ctx)
	token, err := p.oauth(at).Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		var answer *oauth2.RetrieveError
		if errors.As(err, &answer) { // its text contains the whole response
			return nil, fmt.Errorf("the provider refuses the code: %s %s", answer.ErrorCode, answer.ErrorDescription)
		}
		return nil, fmt.Errorf("exchange the code: %w", err)
	}
	raw, ok := token.Extra("id_token").(string)
	if !ok {
		return nil, errors.New("the provider has sent no ID token")
	}
	about, err := p.verify(ctx, at, raw, f.Nonce)
	if err != nil {
		return nil, err
	}
	if about.role(p.cfg) == "" && at.UserInfoEndpoint() != "" {
		p.complete(ctx, at, token, about)
	}
	return about, nil
}

// verify checks the ID token: signature, issuer, audience, time, nonce, and the client that it was
// issued to.
func (p *provider) verify(ctx context.Context, at *oidc.Provider, raw, nonce string) (claims, error) {
	id, err := at.Verifier(&oidc.Config{
		ClientID: p.cfg.ClientID,
		Now:      func() time.Time { return p.now().Add(-clockSkew) },
	}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("the ID token is not valid: %w", err)
	}
	if nonce == "" || id.Nonce != nonce {
		return nil, errNonce
	}
	about := make(claims)
	if err := id.Claims(&about); err != nil {
		return nil, fmt.Errorf("the claims of the ID token: %w", err)
	}
	if party, ok := about["azp"].(string); ok && party != p.cfg.ClientID || !ok && len(id.Audience) > 1 {
		return nil, errParty
	}
	return about, nil
}

// complete adds claims from the provider's user info endpoint. Those of the ID token take
// precedence.
func (p *provider) complete(ctx context.Context, at *oidc.Provider, token *oauth2.Token, about claims) {
	info, err := at.UserInfo(ctx, oauth2.StaticTokenSource(token))
	if err != nil {
		p.log.WarnContext(ctx, "console: cannot read the OIDC user info of a user without a role", "err", err)
		return
	}
	more := make(claims)
	if info.Subject == "" || info.Subject != about["sub"] || info.Claims(&more) != nil {
		return
	}
	for name, value := range more {
		if _, known := about[name]; !known {
			about[name] = value
		}
	}
}
