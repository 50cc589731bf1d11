package idempotency

import (
	"context"
	"time"
)

// Admin is the operators' view of a [Store]. It lists keys, and never the answers stored for them.
type Admin interface {
	// List returns up to limit keys that match, those that expire last first. To get the next page,
	// pass the last key of the previous page as after.
	List(ctx context.Context, filter Filter, after *Kept, limit int) ([]Kept, error)
}

// Filter selects keys. A zero field matches all.
type Filter struct {
	Tenant    string `json:"tenant,omitempty"`
	Principal string `json:"principal,omitempty"`
	Route     string `json:"route,omitempty"`
	Key       string `json:"key,omitempty"`
	Open      bool   `json:"open,omitempty"` // only those without an answer
}

// Kept describes a stored key.
type Kept struct {
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Route     string    `json:"route"`
	Key       string    `json:"key"`
	Done      bool      `json:"done"`            // an answer is stored
	Bytes     int       `json:"bytes,omitempty"` // size of the answer
	Leased    time.Time `json:"leased,omitzero"` // when the lease of its request expires
	Expires   time.Time `json:"expires"`
}
