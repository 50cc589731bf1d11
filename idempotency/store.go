package idempotency

import (
	"context"
	"errors"
	"time"
)

// ErrLost means that a claim is no longer held: its lease ran out and another request took the key over, or it was completed
// with another answer. The transaction that it was used in must be rolled back, so that its effect does not happen twice.
var ErrLost = errors.New("idempotency: the claim on the key is lost")

// ID names a key. Two requests share an answer only if all four parts are equal, so that the answer for one user can never be
// given to another. Each part is valid UTF-8 without zero bytes: Tenant, Principal and Key at most 255 bytes, Route at most 512.
type ID struct {
	Tenant    string // whose system it is; may be empty
	Principal string // who asks; empty for endpoints without users
	Route     string // method and pattern
	Key       string // what the client sent
}

// Fingerprint tells requests with one key apart: a SHA-256 of method, path, query, media type and body, without the boundary of a
// multipart one.
type Fingerprint [32]byte

// Claim is the right to do the work for a key.
type Claim struct {
	ID
	Fingerprint Fingerprint
	// Token is unique to this claim and fences it: what is done under another claim's token has no effect.
	Token string
	// Lease is for how long nobody else is given the key. It is zero for a claim that ends with its transaction.
	Lease time.Duration
	// Retention is for how long the key is remembered. A key that is older is new.
	Retention time.Duration
}

// State is what a store knows about a key.
type State int

// What becomes of an attempt to claim a key.
const (
	// Claimed means that the caller has the key, and does the work.
	Claimed State = iota
	// Busy means that somebody else has it.
	Busy
	// Done means that the work was done; there is an answer.
	Done
	// Mismatch means that the key belongs to a request with another fingerprint, be it done or not.
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

// Store keeps keys and answers. Tx is the transaction type of the application. The clock that decides is the store's own.
// All methods are safe for concurrent use; none of them waits for a transaction that another request has open, except where a
// claim that is lost already meets the one that has taken over.
type Store[Tx any] interface {
	// Claim tries to get the key for c.Lease. Of any number of simultaneous calls for a new key, exactly one gets Claimed. A
	// key whose lease has run out without an answer goes to the next who asks with the same fingerprint; a key older than
	// its retention to the next who asks at all. A claim that is repeated with its own token is given again, unless it is lost.
	// What Claim returns is durable.
	Claim(ctx context.Context, c Claim) (Outcome, error)

	// ClaimIn is Claim for a claim that ends with tx: others get Busy until then. If tx ends without Complete, it is as if the
	// key had never been claimed. c.Lease must be zero.
	ClaimIn(ctx context.Context, tx Tx, c Claim) (Outcome, error)

	// Complete records the answer in tx: it counts if and only if tx commits. It returns [ErrLost] if c is not held any more,
	// and makes sure that it stays held until tx ends. Completing again with an equal answer changes nothing.
	Complete(ctx context.Context, tx Tx, c Claim, a Answer) error

	// Save is Complete in a transaction of its own, for a claim with a lease.
	Save(ctx context.Context, c Claim, a Answer) error

	// Release gives the key back, as if it had never been claimed. A claim that is lost or completed is left alone.
	Release(ctx context.Context, c Claim) error

	// Purge removes keys that are older than their retention, in small steps that hold nobody up, and returns how many.
	Purge(ctx context.Context) (removed int, err error)
}
