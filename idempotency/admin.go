package idempotency

import (
	"context"
	"time"
)

// Admin is the operator's side of a [Store]. It shows which keys there are, and never the answers kept for them.
type Admin interface {
	// List returns up to limit keys that match, those that expire last first. Those of a page that follows lie behind the
	// last of the page before.
	List(ctx context.Context, filter Filter, after *Kept, limit int) ([]Kept, error)
}

// Filter chooses keys. What is zero matches all.
type Filter struct {
	Tenant    string `json:"tenant,omitempty"`
	Principal string `json:"principal,omitempty"`
	Route     string `json:"route,omitempty"`
	Key       string `json:"key,omitempty"`
	Open      bool   `json:"open,omitempty"` // only those without an answer
}

// Kept is a key that a client has sent.
type Kept struct {
	Tenant    string    `json:"tenant,omitempty"`
	Principal string    `json:"principal,omitempty"`
	Route     string    `json:"route"`
	Key       string    `json:"key"`
	Done      bool      `json:"done"`            // there is an answer
	Bytes     int       `json:"bytes,omitempty"` // of the answer
	Leased    time.Time `json:"leased,omitzero"` // until when whoever works on it has it for itself
	Expires   time.Time `json:"expires"`
}
