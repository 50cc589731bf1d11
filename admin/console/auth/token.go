package auth

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/postrider/postrider/admin/console/internal/guard"
)

// guesses is how many wrong tokens an address may send per minute, and at once.
const guesses = 10

type knownToken struct {
	hash  [sha256.Size]byte
	grant string
	who   Identity
}

func knowTokens(tokens []Token) []knownToken {
	known := make([]knownToken, 0, len(tokens))
	for _, t := range tokens {
		role := t.Role
		if role == "" {
			role = Viewer
		}
		hash := sha256.Sum256([]byte(t.Secret))
		twice := sha256.Sum256(hash[:]) // this goes into cookies, so it must not reveal hash
		known = append(known, knownToken{hash, hex.EncodeToString(twice[:8]), Identity{t.Name, role, "token"}})
	}
	return known
}

// lookup compares the secret with all tokens in constant time.
func (a *Auth) lookup(secret string) (found knownToken, ok bool) {
	hash := sha256.Sum256([]byte(secret))
	for _, t := range a.tokens {
		if subtle.ConstantTimeCompare(hash[:], t.hash[:]) == 1 {
			found, ok = t, true
		}
	}
	return found, ok
}

// byToken returns the owner of the token, or the response to a wrong one.
func (a *Auth) byToken(r *http.Request, secret string) (knownToken, *refusal) {
	// Check the token before the limit: behind an unknown proxy all clients have one address, and
	// one client's wrong tokens must not lock the others out. Tokens are too long to be guessed;
	// the limit only protects the log and the processor.
	if t, ok := a.lookup(secret); ok {
		return t, nil
	}
	client, now := guard.Client(r, a.proxies()), time.Now()
	if wait := a.wrong.Wait(client, now); wait > 0 {
		return knownToken{}, &refusal{wait: wait}
	}
	a.wrong.Take(client, now)
	a.log.WarnContext(r.Context(), "console: wrong token", "client", client)
	return knownToken{}, &refusal{problem: guard.Problem{Status: http.StatusUnauthorized, Detail: "There is no such token."}}
}

// bearer returns the token in the Authorization header.
func bearer(r *http.Request) (string, bool) {
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(secret), ok && strings.EqualFold(scheme, "bearer")
}

// signIn starts a session for a token.
func (a *Auth) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Token string `json:"token"`
	}
	if err := json.NewDecoder(io.LimitReader(r.Body, 4<<10)).Decode(&body); err != nil || body.Token == "" {
		guard.Problem{Status: http.StatusBadRequest, Detail: `Want {"token": "…"}.`}.Write(w)
		return
	}
	t, no := a.byToken(r, strings.TrimSpace(body.Token))
	if no != nil {
		no.write(w)
		return
	}
	if err := a.begin(w, r, t.who, t.grant); err != nil {
		a.log.ErrorContext(r.Context(), "console: signing in failed", "error", err)
		guard.Problem{Status: http.StatusInternalServerError}.Write(w)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
