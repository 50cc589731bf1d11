package idempotency

import (
	"cmp"
	"crypto/cipher"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"
)

// Config configures [Keys]. Every field except Scope has a default.
type Config struct {
	// Scope returns who sends a request, from the result of earlier authentication. If it returns
	// an error, the request is refused: with the status of a [*Problem], or else with 500. Scope
	// must be set: without an owner of each key, one user could get another user's answer. Use
	// [Public] for endpoints without users.
	Scope func(*http.Request) (Scope, error)
	// Required refuses requests without a key with 400; otherwise they are served as if there were
	// no middleware. GET, HEAD, OPTIONS and TRACE never need a key. Defaults to false.
	Required bool
	// Wait is how long a request waits for the answer of another request with the same key before
	// it gets 409. Defaults to 0: it gets 409 at once.
	Wait time.Duration
	// Lease is the time limit of a request, enforced by a deadline on its context. After a crash,
	// the key is free again after at most this time. Defaults to 1 min.
	Lease time.Duration
	// Retention is how long answers are stored. After that, the same key counts as new. It must not
	// be less than Lease. Defaults to 24 h.
	Retention time.Duration
	// MaxKey is the maximum length of a key, at most 255. Defaults to 255.
	MaxKey int
	// MaxBody is the maximum size of a request body in bytes. Bodies are held in memory; a larger
	// one gets 413. Defaults to 1 MiB.
	MaxBody int64
	// MaxAnswer is the maximum size of the body of a stored answer in bytes. Defaults to 1 MiB.
	MaxAnswer int
	// Headers are the response header fields that are stored. [New] refuses fields that hold
	// secrets, such as Set-Cookie, and fields of a connection. Defaults to [DefaultHeaders].
	Headers []string
	// Cipher encrypts stored answers and binds each to its key. A person with access to the table
	// can then neither read answers nor move them to other keys. Answers stored under another
	// cipher cannot be replayed. Defaults to none.
	Cipher cipher.AEAD
	// Keep reports whether answers with a status are stored. With any other status the key is
	// released, and a retry runs the handler again. Defaults to [KeepFinal].
	Keep func(status int) bool
	// Route names the operation. Keys of different operations are independent. Defaults to method
	// and pattern of the [http.ServeMux], or method and path without one.
	Route func(*http.Request) string
	// Docs is the URL of the API's documentation of keys, for the "type" of problems. Defaults to
	// none.
	Docs string
	// Logger logs failures of the store and lost claims. Defaults to [slog.Default].
	Logger *slog.Logger
}

// DefaultHeaders returns the header fields that are stored if [Config.Headers] is not set.
func DefaultHeaders() []string {
	return []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Type", "Etag", "Expires", "Last-Modified", "Link", "Location", "Vary"}
}

// neverStored are header fields that hold secrets or belong to one connection or message.
var neverStored = []string{"Authorization", "Connection", "Content-Length", "Cookie", "Date", Header, ReplayedHeader, "Keep-Alive", sealedHeader,
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info", "Authentication-Info", "Proxy-Connection", "Set-Cookie", "Set-Cookie2", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Www-Authenticate"}

// KeepFinal is the default of [Config.Keep]. It keeps every status except failures of the server
// (5xx), statuses that ask for a retry (408, 409, 425 and 429), and those that another login may
// change (401 and 403).
func KeepFinal(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooEarly, http.StatusTooManyRequests:
		return false
	}
	return status < 500
}

func (c Config) withDefaults() Config {
	c.Lease = cmp.Or(c.Lease, time.Minute)
	c.Retention = cmp.Or(c.Retention, 24*time.Hour)
	c.MaxKey = cmp.Or(c.MaxKey, maxPart)
	c.MaxBody = cmp.Or(c.MaxBody, 1<<20)
	c.MaxAnswer = cmp.Or(c.MaxAnswer, 1<<20)
	if c.Headers == nil {
		c.Headers = DefaultHeaders()
	}
	c.Headers = slices.Clone(c.Headers)
	for i, name := range c.Headers {
		c.Headers[i] = http.CanonicalHeaderKey(name)
	}
	if c.Keep == nil {
		c.Keep = KeepFinal
	}
	if c.Route == nil {
		c.Route = routeOf
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("idempotency: "+format, args...))
	}
	if c.Scope == nil {
		wrong("Scope is not set: who asks? For endpoints without users, say idempotency.Public")
	}
	if c.Lease < 0 || c.Retention < 0 || c.Wait < 0 {
		wrong("Lease is %s, Retention %s and Wait %s: want none below zero", c.Lease, c.Retention, c.Wait)
	}
	if c.Retention < c.Lease {
		wrong("Retention is %s and Lease %s: a key would be forgotten while its request is served", c.Retention, c.Lease)
	}
	if c.MaxKey < 1 || c.MaxKey > maxPart {
		wrong("MaxKey is %d: want 1 to %d", c.MaxKey, maxPart)
	}
	if c.MaxBody < 0 || c.MaxAnswer < 0 {
		wrong("MaxBody is %d and MaxAnswer %d: want none below zero", c.MaxBody, c.MaxAnswer)
	}
	for _, name := range c.Headers {
		if slices.Contains(neverStored, name) {
			wrong("Headers has %s, which is never stored", name)
		}
	}
	return errors.Join(errs...)
}
