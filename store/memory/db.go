package memory

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Outbox returns the outbox for transactions of the store.
func (s *DB) Outbox() postrider.Outbox[*Tx] { return s }

// Transactor returns the transactor of the store.
func (s *DB) Transactor() postrider.Transactor[*Tx] { return s }

// Feeds returns the relay's side of the store.
func (s *DB) Feeds() feeds.Store { return s }

// Admin returns the admin API.
func (s *DB) Admin() *DB { return s }

// Inbox returns the consumer's side of the store, which records handled messages.
func (s *DB) Inbox() *Inbox { return &Inbox{s} }

// Sagas returns the store of sagas and its admin API.
func (s *DB) Sagas() *Sagas { return s.sagas }

// IdempotencyKeys returns the store for the idempotency keys of HTTP requests and its admin API.
func (s *DB) IdempotencyKeys() *Idempotency { return s.idempotency }

// Reconciliations returns the store of reconcilers. [NewReconcilers] is for transactions of another
// type.
func (s *DB) Reconciliations() *Reconcilers[*Tx] { return s.jobs }
