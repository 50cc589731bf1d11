package memory

import (
	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// Outbox writes messages in transactions of the store.
func (s *DB) Outbox() postrider.Outbox[*Tx] { return s }

// Transactor runs functions in transactions of the store.
func (s *DB) Transactor() postrider.Transactor[*Tx] { return s }

// Feeds is what a relay reads.
func (s *DB) Feeds() feeds.Store { return s }

// Admin is what operators ask for and do.
func (s *DB) Admin() *DB { return s }

// Inbox is where consumers remember which messages they have handled.
func (s *DB) Inbox() *Inbox { return &Inbox{s} }

// Sagas is where runners keep sagas, and what operators ask for and do about them.
func (s *DB) Sagas() *Sagas { return s.sagas }

// IdempotencyKeys is where HTTP handlers keep the keys of requests, and what operators ask for about them.
func (s *DB) IdempotencyKeys() *Idempotency { return s.idempotency }

// Reconciliations is where reconciliation keeps its jobs. [NewReconcilers] is for transactions of another type.
func (s *DB) Reconciliations() *Reconcilers[*Tx] { return s.jobs }
