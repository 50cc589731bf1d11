package idempotency

import (
	"context"
	"errors"
	"time"
)

// ErrLost means that a claim is no longer held: its lease ran out and another request took the key
// over, or it was completed with another answer. The transaction that it was used in must be rolled
// back, so that its effect does not happen twice.
var ErrLost = errors.New("idempotency: the claim on the key is lost")

// ID identifies a key. Two requests share an answer only if all four parts are equal, so that one
// user can never get the answer of another. Each part is valid UTF-8 without zero bytes: Tenant,
// Principal and Key at most 255 bytes, Route at most 512.
type ID struct {
	Tenant    string // may be empty
	Principal string // the user or client; empty for endpoints without users
	Route     string // method and pattern
	Key       string // value of the header field
}

// Fingerprint distinguishes requests with the same key. It is a SHA-256 of method, path, query,
// media type and body, without the boundary of a multipart body.
type Fingerprint [32]byte

// Claim is the right to do the work of a key.
type Claim struct {
	ID
	Fingerprint Fingerprint
	// Token is unique to this claim and fences it: the store rejects writes under another token.
	Token string
	// Lease is how long no other request gets the key. It is zero for a claim that ends with its
	// transaction.
	Lease time.Duration
	// Retention is how long the key is remembered. After that, it counts as new.
	Retention time.Duration
}

// State is what a store knows about a key.
type State int

// The states of a key when a request tries to claim it.
const (
	// Claimed means that the caller has the key and must do the work.
	Claimed State = iota
	// Busy means that another request has the key.
	Busy
	// Done means that the work is done and an answer is stored.
	Done
	// Mismatch means that the key belongs to a request with another fingerprint, completed or not.
	Mismatch
)

// String returns the state as one lower-case word.
func (s State) String() string {
	switch s {
	case Claimed:
		return "claimed"
	case Busy:
		return "busy"
	case Done:
		return "done"
	case Mismatch:
		return "mismatch"
	}
	return "unknown"
}

// Outcome is the result of an attempt to claim a key.
type Outcome struct {
	State  State
	Answer Answer // if Done
}

// Store stores keys and answers. Tx is the transaction type of the application. The store's own
// clock decides when leases and retentions expire. All methods are safe for concurrent use. None
// waits for an open transaction of another request, except when an already lost claim meets the
// transaction of the claim that took over.
type Store[Tx any] interface {
	// Claim tries to get the key for c.Lease. Of any number of concurrent calls for a new key,
	// exactly one gets Claimed. If a lease expires without an answer, the next caller with the same
	// fingerprint gets the key. If the retention of a key has expired, any caller does. A repeated
	// call with the token of the current claim gets Claimed again. The result of Claim is durable.
	Claim(ctx context.Context, c Claim) (Outcome, error)

	// ClaimIn is like Claim, but the claim ends with tx: until then others get Busy. If tx ends
	// without Complete, the key is as if it had never been claimed. c.Lease must be zero.
	ClaimIn(ctx context.Context, tx Tx, c Claim) (Outcome, error)

	// Complete records the answer in tx: it takes effect if and only if tx commits. It returns
	// [ErrLost] if c does not hold the key any more; otherwise c holds it until tx ends. Completing
	// again with an equal answer changes nothing.
	Complete(ctx context.Context, tx Tx, c Claim, a Answer) error

	// Save is like Complete in a transaction of its own, for a claim with a lease.
	Save(ctx context.Context, c Claim, a Answer) error

	// Release gives up the key, as if it had never been claimed. It has no effect on a claim that
	// is lost or completed.
	Release(ctx context.Context, c Claim) error

	// Purge removes keys that are older than their retention, in small batches that do not block
	// other calls, and returns their number.
	Purge(ctx context.Context) (removed int, err error)
}
