// Package storetest is the conformance test suite for stores: it tests what the interfaces of
// packages postrider, feeds and admin specify.
//
// A store's own test is one function:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness {
//			s := open(t) // empty, and used by nothing else
//			return storetest.Harness{Store: s, Begin: begin(s), Shards: 8}
//		})
//	}
//
// The random tests print their seed when they fail. Set STORETEST_SEED to it to repeat the run.
package storetest

import (
	"context"
	"slices"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/feeds"
)

// Harness provides an empty store under test.
type Harness struct {
	// Store is the relay's side.
	Store feeds.Store
	// Begin starts a transaction in which the outbox of the same store can be used. The suite calls it from several
	// goroutines, and uses Store while up to 16 transactions are open.
	Begin func(t *testing.T) Tx
	// Shards is the number of shards that the store was set up with.
	Shards int
	// OneFeed is set for a store that keeps the state of a message in its row: it serves one feed,
	// refuses to open another, and does not return deferred messages from Read again.
	OneFeed bool
	// Admin is the admin API of the same store. If it is nil, its tests are skipped.
	Admin interface {
		admin.DeadLetters
		admin.Feeds
		admin.Records
		admin.Log
		admin.Gauges
		admin.Problems
	}
}

// Tx is a transaction of the application, together with the outbox.
type Tx interface {
	Enqueue(ctx context.Context, msgs ...postrider.Message) error
	Offer(ctx context.Context, msgs ...postrider.Message) (repeats []int, err error)
	Commit() error
	Rollback() error
}

type test struct {
	name string
	test func(*testing.T, Harness)
}

// Run tests the stores that open returns. Each test opens its own store, and the tests run in
// parallel.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range slices.Concat(logTests, deferralTests, adminTests) {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.test(t, open(t))
		})
	}
	t.Run("Random", func(t *testing.T) {
		t.Parallel()
		testRandom(t, open)
	})
}

var logTests = []test{
	{"Fields", testFields},
	{"LargePayload", testLargePayload},
	{"Limits", testLimits},
	{"ZeroIDIsFilled", testZeroIDIsFilled},
	{"Copies", testCopies},
	{"InvalidIsRefusedWhole", testInvalidIsRefusedWhole},
	{"DedupKey", testDedupKey},

	{"RollbackIsInvisible", testRollbackIsInvisible},
	{"LateCommitIsNotLost", testLateCommitIsNotLost},
	{"LateCommitsInterleaved", testLateCommitsInterleaved},
	{"LateElsewhere", testLateElsewhere},
	{"SpansShards", testSpansShards},
	{"OrderOverTransactions", testOrderOverTransactions},

	{"LargeTransactionInPages", testLargeTransactionInPages},
	{"LateCommitBetweenPages", testLateCommitBetweenPages},
	{"PagingUnderWrites", testPagingUnderWrites},
	{"WanderingUnderWrites", testWanderingUnderWrites},
	{"LimitSetsMore", testLimitSetsMore},
	{"OnlyWantedShards", testOnlyWantedShards},
	{"FeedsAreIndependent", testFeedsAreIndependent},
	{"UnknownFeedIsRefused", testUnknownFeedIsRefused},
	{"FirstFeeds", testFirstFeeds},
	{"NewFeedBegins", testNewFeedBegins},
	{"FeedRemembersDestination", testFeedRemembersDestination},

	{"SettlePartOfBatch", testSettlePartOfBatch},
	{"SettleCoversEarlierBatches", testSettleCoversEarlierBatches},
	{"StaleSettleMovesNothing", testStaleSettleMovesNothing},
	{"ReleaseHandsOver", testReleaseHandsOver},
	{"CrashRepeatsUnsettled", testCrashRepeatsUnsettled},
	{"MoreUntilTheEnd", testMoreUntilTheEnd},
	{"RenewalSettlesNothing", testRenewalSettlesNothing},
	{"MarkOfAnEarlierEpoch", testMarkOfAnEarlierEpoch},
	{"TakenBack", testTakenBack},

	{"Fence", testFence},
	{"SettleRenews", testSettleRenews},
	{"CloseKeepsLease", testCloseKeepsLease},
	{"FairShare", testFairShare},
	{"DeadMemberIsReplaced", testDeadMemberIsReplaced},
	{"CancelledContext", testCancelledContext},
	{"Unsure", testUnsure},
	{"UnsureAfterStaleMark", testUnsureAfterStaleMark},
	{"FeedIDs", testFeedIDs},

	{"ConcurrentWriters", testConcurrentWriters},
}
