package idempotency

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net/http"
)

// sealedHeader marks an encrypted answer. A response never has it, because no allow-list may
// contain it.
const sealedHeader = "Postrider-Sealed"

var errSealed = errors.New("idempotency: a stored answer cannot be decrypted: it is encrypted with another key, or belongs to another request")

// seal encrypts an answer for the store and binds it to its key. The status stays readable.
func (k *Keys[Tx]) seal(id ID, a Answer) (Answer, error) {
	if k.cfg.Cipher == nil {
		return a, nil
	}
	plain, err := a.MarshalBinary()
	if err != nil {
		return Answer{}, err
	}
	nonce := make([]byte, k.cfg.Cipher.NonceSize())
	rand.Read(nonce) // never fails
	return Answer{
		Status: a.Status,
		Header: http.Header{sealedHeader: {"1"}},
		Body:   k.cfg.Cipher.Seal(nonce, nonce, plain, id.encode()),
	}, nil
}

// unseal decrypts the answer of an outcome. An answer that was stored before a cipher was
// configured is returned as it is.
func (k *Keys[Tx]) unseal(id ID, outcome Outcome, err error) (Outcome, error) {
	if err != nil || outcome.State != Done || outcome.Answer.Header[sealedHeader] == nil {
		return outcome, err
	}
	if k.cfg.Cipher == nil || len(outcome.Answer.Body) < k.cfg.Cipher.NonceSize() {
		return Outcome{}, errSealed
	}
	nonce, sealed := outcome.Answer.Body[:k.cfg.Cipher.NonceSize()], outcome.Answer.Body[k.cfg.Cipher.NonceSize():]
	plain, err := k.cfg.Cipher.Open(nil, nonce, sealed, id.encode())
	if err != nil {
		return Outcome{}, errSealed
	}
	if err := outcome.Answer.UnmarshalBinary(plain); err != nil {
		return Outcome{}, err
	}
	return outcome, nil
}

// encode returns equal bytes for equal IDs only.
func (id ID) encode() []byte {
	var out []byte
	for _, part := range []string{id.Tenant, id.Principal, id.Route, id.Key} {
		out = binary.AppendUvarint(out, uint64(len(part)))
		out = append(out, part...)
	}
	return out
}
