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

// Config is how keys are treated. Everything but Scope has a default.
type Config struct {
	// Scope says who asks, from what authentication has found out before. An error refuses the request: with its own status
	// if it is a [*Problem], otherwise with 500. It must be set: a key without an owner gives one user's answer to another.
	// For endpoints without users it is [Public].
	Scope func(*http.Request) (Scope, error)
	// Required refuses requests without a key with 400; otherwise they are served as if there were no middleware. GET, HEAD,
	// OPTIONS and TRACE never need one. Defaults to false.
	Required bool
	// Wait is for how long a request waits for the answer of another one with the same key before it gets 409. Defaults
	// to 0: it gets 409 at once.
	Wait time.Duration
	// Lease is how long a request may take. Its context ends then; after a crash, the key is free after this time at the
	// latest. Defaults to 1 min.
	Lease time.Duration
	// Retention is for how long answers are kept; the same key is new after that. Not less than Lease. Defaults to 24 h.
	Retention time.Duration
	// MaxKey is the length of the longest key that is accepted. At most 255. Defaults to 255.
	MaxKey int
	// MaxBody is the largest body of a request, in bytes, which is held in memory; more is answered with 413. Defaults to 1 MiB.
	MaxBody int64
	// MaxAnswer is the largest body of an answer that is stored, in bytes. Defaults to 1 MiB.
	MaxAnswer int
	// Headers are the fields of a response that are stored. Fields that hold secrets, such as Set-Cookie, and those that
	// belong to a connection are refused. Defaults to [DefaultHeaders].
	Headers []string
	// Cipher encrypts stored answers, each bound to its key, so that who can read or change the table cannot read them, or give
	// them to others. Answers stored under another cipher cannot be replayed. Defaults to none.
	Cipher cipher.AEAD
	// Keep tells which statuses are stored. With any other the key is given back, and a retry is a new attempt. Defaults
	// to [KeepFinal].
	Keep func(status int) bool
	// Route names the operation; keys of different operations have nothing to do with each other. Defaults to method and
	// pattern of the [http.ServeMux], or method and path outside of one.
	Route func(*http.Request) string
	// Docs is the address of the API's documentation of keys, for the "type" of problems. Defaults to none.
	Docs string
	// Logger is told of failures of the store, and of lost claims. Defaults to [slog.Default].
	Logger *slog.Logger
}

// DefaultHeaders returns the header fields that are stored unless [Config.Headers] says otherwise.
func DefaultHeaders() []string {
	return []string{"Cache-Control", "Content-Disposition", "Content-Encoding", "Content-Language", "Content-Location",
		"Content-Type", "Etag", "Expires", "Last-Modified", "Link", "Location", "Vary"}
}

// neverStored are header fields with secrets, or about one connection or message.
var neverStored = []string{"Authorization", "Connection", "Content-Length", "Cookie", "Date", Header, ReplayedHeader, "Keep-Alive", sealedHeader,
	"Proxy-Authenticate", "Proxy-Authorization", "Proxy-Authentication-Info", "Authentication-Info", "Proxy-Connection", "Set-Cookie", "Set-Cookie2", "Te", "Trailer",
	"Transfer-Encoding", "Upgrade", "Www-Authenticate"}

// KeepFinal is the default of [Config.Keep]: every status but those of the server's own failures (5xx), those that ask for another attempt
// (408, 409, 425 and 429), and those that a client gets past with another login (401 and 403).
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
