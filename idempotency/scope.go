package idempotency

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// Scope identifies who sends a request. Keys of different scopes are independent.
type Scope struct {
	Tenant    string // may be empty
	Principal string // must not be empty: a user, a client, a service account
	public    bool
}

// Public is the [Config.Scope] of endpoints without users, such as a sign-up form. All callers
// share their keys: a caller that knows or guesses a key, and sends the same body, gets the answer.
// Therefore keys of less than 16 characters are refused.
func Public(*http.Request) (Scope, error) { return Scope{public: true}, nil }

// minPublicKey is the minimum length of a key of [Public]: that of a random number that cannot be
// guessed.
const minPublicKey = 16

const (
	maxPart  = 255
	maxRoute = 512
)

var errNobody = errors.New("idempotency: Scope returned no principal; for an endpoint without users, say so: idempotency.Public")

func (s Scope) validate() error {
	if s.Principal == "" && !s.public {
		return errNobody
	}
	for what, text := range map[string]string{"tenant": s.Tenant, "principal": s.Principal} {
		if len(text) > maxPart || !utf8.ValidString(text) || strings.Contains(text, "\x00") {
			return fmt.Errorf("idempotency: Scope returned the %s %.40q: want at most %d bytes of text", what, text, maxPart)
		}
	}
	return nil
}
