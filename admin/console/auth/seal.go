package auth

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
)

var errSeal = errors.New("auth: not sealed by this console")

// seal encrypts and authenticates cookies (AES-256-GCM), so that browsers can neither read nor
// change them.
type seal struct{ aead cipher.AEAD }

// newSeal returns the seal for one purpose, with a key of its own.
func newSeal(key []byte, purpose string) (seal, error) {
	derived, err := hkdf.Key(sha256.New, key, nil, "postrider console "+purpose, 32)
	if err != nil {
		return seal{}, fmt.Errorf("auth: key: %w", err)
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return seal{}, fmt.Errorf("auth: key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return seal{}, fmt.Errorf("auth: key: %w", err)
	}
	return seal{aead: aead}, nil
}

func (s seal) close(v any) (string, error) {
	plain, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("auth: cookie: %w", err)
	}
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil)), nil
}

func (s seal) open(sealed string, v any) error {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return errSeal
	}
	plain, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return errSeal
	}
	if json.Unmarshal(plain, v) != nil {
		return errSeal
	}
	return nil
}

// randomText returns 128 random bits.
func randomText() string { return rand.Text() }
