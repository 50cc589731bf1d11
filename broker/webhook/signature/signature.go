// Package signature signs and verifies HTTP requests according to Standard Webhooks: the header
// webhook-signature covers the headers webhook-id and webhook-timestamp and the body. Services that
// only receive need no other part of Postrider.
//
// A secret is "whsec_" plus 24 to 64 bytes in base64, shared by both sides, or one half of an
// ed25519 pair: "whsk_" plus the private key to sign, or "whpk_" plus the public key to verify.
// Requests are signed with all secrets, and verified with any of them.
package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks.
const (
	HeaderID        = "Webhook-Id"
	HeaderTimestamp = "Webhook-Timestamp"
	HeaderSignature = "Webhook-Signature"
)

// Tolerance is the maximum deviation of a request's timestamp: an older request may be a replay.
const Tolerance = 5 * time.Minute

// maxSignatures limits how many signatures of an unverified request are checked, because each costs
// time.
const maxSignatures = 8

// ErrNotVerified means that a request is not from a holder of a secret, or is too old.
var ErrNotVerified = errors.New("signature: not verified")

// key is one secret.
type key struct {
	version string
	sign    func(content []byte) []byte // nil for a public key
	verify  func(content, signature []byte) bool
}

func parseKeys(secrets []string) ([]key, error) {
	keys, errs := make([]key, len(secrets)), make([]error, len(secrets))
	for i, secret := range secrets {
		var err error
		if keys[i], err = parseKey(secret); err != nil {
			errs[i] = fmt.Errorf("signature: secrets[%d] %w", i, err)
		}
	}
	return keys, errors.Join(errs...)
}

func parseKey(secret string) (key, error) {
	kind, text, _ := strings.Cut(secret, "_")
	raw, err := base64.StdEncoding.DecodeString(text)
	switch {
	case err != nil:
		return key{}, errors.New("is not base64 behind its prefix") // omits err, which may show a part of the secret
	case kind == "whsec" && len(raw) >= 24 && len(raw) <= 64:
		sign := func(content []byte) []byte {
			h := hmac.New(sha256.New, raw)
			h.Write(content)
			return h.Sum(nil)
		}
		return key{"v1", sign, func(content, got []byte) bool { return hmac.Equal(got, sign(content)) }}, nil
	case kind == "whsk" && (len(raw) == ed25519.SeedSize || len(raw) == ed25519.PrivateKeySize):
		private := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
		sign := func(content []byte) []byte { return ed25519.Sign(private, content) }
		public := private.Public().(ed25519.PublicKey) //nolint:errcheck // it is documented
		return key{"v1a", sign, func(content, got []byte) bool { return ed25519.Verify(public, content, got) }}, nil
	case kind == "whpk" && len(raw) == ed25519.PublicKeySize:
		return key{"v1a", nil, func(content, got []byte) bool { return ed25519.Verify(raw, content, got) }}, nil
	}
	return key{}, errors.New("is not a valid secret: want whsec_ with 24 to 64 bytes, or whsk_ (private) or whpk_ (public) with a key")
}

func signedContent(id, timestamp string, body []byte) []byte {
	return slices.Concat([]byte(id), []byte("."), []byte(timestamp), []byte("."), body)
}

// Signer signs requests. It is safe for concurrent use.
type Signer struct{ keys []key }

// NewSigner returns a signer that signs with all secrets, or all mistakes in them.
func NewSigner(secrets ...string) (*Signer, error) {
	keys, err := parseKeys(secrets)
	if err == nil && slices.ContainsFunc(keys, func(k key) bool { return k.sign == nil }) {
		err = errors.New("signature: whpk_ is a public key, which cannot sign")
	}
	if err != nil {
		return nil, err
	}
	return &Signer{keys}, nil
}

// Sign sets the headers of a request sent at now; without secrets, only those of its ID and its
// time.
func (s *Signer) Sign(h http.Header, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, timestamp)
	if len(s.keys) == 0 {
		return
	}
	content := signedContent(id, timestamp, body)
	signatures := make([]string, len(s.keys))
	for i, k := range s.keys {
		signatures[i] = k.version + "," + base64.StdEncoding.EncodeToString(k.sign(content))
	}
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

// Verifier verifies requests. It is safe for concurrent use.
type Verifier struct{ keys []key }

// NewVerifier returns a verifier of requests signed with any of the secrets, or all mistakes in
// them.
func NewVerifier(secrets ...string) (*Verifier, error) {
	keys, err := parseKeys(secrets)
	if err == nil && len(keys) == 0 {
		err = errors.New("signature: there is no secret to verify with")
	}
	if err != nil {
		return nil, err
	}
	return &Verifier{keys}, nil
}

// Verify returns [ErrNotVerified] with the reason, unless the headers sign the body at a time
// within [Tolerance].
func (v *Verifier) Verify(h http.Header, now time.Time, body []byte) error {
	id, timestamp, signatures := h.Get(HeaderID), h.Get(HeaderTimestamp), strings.Fields(h.Get(HeaderSignature))
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || len(signatures) == 0 {
		return fmt.Errorf("%w: webhook-id, webhook-timestamp or webhook-signature is missing or wrong", ErrNotVerified)
	}
	if at := time.Unix(seconds, 0); at.Before(now.Add(-Tolerance)) || at.After(now.Add(Tolerance)) {
		return fmt.Errorf("%w: webhook-timestamp is more than %v off", ErrNotVerified, Tolerance)
	}
	content := signedContent(id, timestamp, body)
	for _, signature := range signatures[:min(len(signatures), maxSignatures)] {
		version, text, _ := strings.Cut(signature, ",")
		got, err := base64.StdEncoding.DecodeString(text)
		matches := func(k key) bool { return k.version == version && k.verify(content, got) }
		if err == nil && slices.ContainsFunc(v.keys, matches) {
			return nil
		}
	}
	return fmt.Errorf("%w: no signature matches", ErrNotVerified)
}
