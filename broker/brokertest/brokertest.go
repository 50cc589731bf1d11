// Package brokertest is the conformance suite for brokers: it tests the contracts of
// [postrider.Publisher] and [postrider.Consumer] against the real server. Messages are published
// through one and read back through the other.
//
// A broker's test is one function:
//
//	func TestBroker(t *testing.T) {
//		brokertest.Run(t, func(t *testing.T) brokertest.Harness {
//			return brokertest.Harness{Server: "127.0.0.1:4222", Create: create, Publisher: publisher, Consumer: consumer}
//		})
//	}
package brokertest

import (
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/brokertest/flaky"
	"github.com/postrider/postrider/internal/need"
)

// Harness describes a broker under test. Publishers and consumers use the default format
// CloudEvents.
type Harness struct {
	// Server is the host and port of the server. Empty means that there is no network connection:
	// tests that need a faulty network are skipped.
	Server string
	// Create makes an empty topic, queue, subject or stream that no other test uses, and returns
	// its name.
	Create func(t *testing.T) string
	// Publisher opens a publisher that connects to the server at the given host and port, and only
	// there. The suite closes it.
	Publisher func(t *testing.T, address string) postrider.Publisher
	// Consumer opens a consumer of the name that handles up to limit messages concurrently, as the
	// only member of its group. Consumers of one name and group follow each other. A new group
	// starts with the oldest message. The suite closes it.
	Consumer func(t *testing.T, name, group string, limit int) postrider.Consumer
	// Burying opens a consumer like Consumer, which moves messages to the name dead after two
	// attempts. Nil means that consumers do not support dead letters, or that dead letters have no
	// name of their own.
	Burying func(t *testing.T, name, group, dead string) postrider.Consumer
	// Member opens a consumer like Consumer, each time as another member of the group, with the
	// shortest possible takeover time. The suite opens some of them in separate processes, by
	// running the test again, and kills them. Nil skips the tests that need it.
	Member func(t *testing.T, name, group string, limit int) postrider.Consumer
	// Plain sends messages like a sender that does not use Postrider: without ID, headers and key.
	// Nil means that the broker itself assigns an ID to each message that its sender can see.
	Plain func(t *testing.T, name string, bodies ...string)
	// Elsewhere opens a publisher whose messages have another source. Nil means that they have
	// none, or that the destination itself drops a message with the ID of another one.
	Elsewhere func(t *testing.T) postrider.Publisher
	// Missing makes a name that does not exist on the server, Forbidden one that the publisher may
	// not send to, and Full one that accepts no more. Nil means that the broker has no such state.
	Missing, Forbidden, Full Fault
	// Restart kills the server, as a crash would, and starts it again. Nil skips the tests that
	// need it.
	Restart func(t *testing.T)

	Abilities
}

// Fault makes a name that accepts nothing, and a function that removes the fault. The function is
// nil if the test cannot remove it.
type Fault func(t *testing.T) (name string, end func())

// Abilities describes how brokers differ.
type Abilities struct {
	// MaxPayload is a payload size, in bytes, that is refused permanently, while half of it is
	// accepted. Zero means that there is no such size below postrider.MaxPayload.
	MaxPayload int
	// NoName is an invalid name. Empty means that every name is valid.
	NoName string
	// OneLineHeaders means that header values with line breaks, or with white space at either end,
	// are refused.
	OneLineHeaders bool
	// FoldsHeaderNames means that the case of header names changes.
	FoldsHeaderNames bool
	// NoPlace means that the broker does not report a message's place: a message without an ID
	// cannot be recognised.
	NoPlace bool
	// SignedIDs means that consumers identify a message by the ID that it was sent with, because
	// only that is signed.
	SignedIDs bool
	// Dedup means that a message published twice arrives once.
	Dedup bool
	// Recalls means that publishers are able to recall; see [broker.Recaller].
	Recalls bool
	// Unordered means that consumers receive messages in no order, even if the publisher keeps
	// order.
	Unordered bool
	// OutageOfNames means that an unreachable server is an outage of its names only: other servers
	// may have others.
	OutageOfNames bool
	// NamesByType means that names are not separate logs, so that messages without a topic are
	// named after their type instead of their aggregate's type.
	NamesByType bool
	// OneAtATime means that Publish needs one round trip per message: the suite sends fewer
	// messages.
	OneAtATime bool
	// SlowTakeover means that detecting a dead consumer takes long: takeover tests run only in the
	// long form.
	SlowTakeover bool
	// SlowRestart means that the server starts slowly: restart tests run only in the long form.
	SlowRestart bool
}

// Run tests the broker that open returns. Each test uses its own names. Tests that restart the
// server run first, and the others in parallel after them.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name     string
		test     func(*testing.T, Harness)
		restarts bool // the server
	}{
		{"Bytes", testBytes, false},
		{"Headers", testHeaders, false},
		{"AwkwardHeaders", testAwkwardHeaders, false},
		{"Fields", testFields, false},
		{"IDs", testIDs, false},
		{"WithoutIDs", testWithoutIDs, false},
		{"NothingToPublish", testNothingToPublish, false},
		{"DoesNotKeepMessages", testDoesNotKeepMessages, false},

		{"OrderPerKey", testOrderPerKey, false},
		{"OrderAcrossTypes", testOrderAcrossTypes, false},
		{"ManyPublishesAtOnce", testManyPublishesAtOnce, false},
		{"NothingBehindAFailure", testNothingBehindAFailure, false},

		{"Repetition", testRepetition, false},
		{"Names", testNames, false},
		{"TooLarge", testTooLarge, false},
		{"NoName", testNoName, false},
		{"Missing", testMissing, false},
		{"Forbidden", testForbidden, false},
		{"Full", testFull, false},

		{"AbsentAtStart", testAbsentAtStart, false},
		{"OutageAndRecovery", testOutageAndRecovery, false},
		{"UnknownOutcome", testUnknownOutcome, false},
		{"StopInMidBatch", testStopInMidBatch, false},
		{"ConfirmedIsDurable", testConfirmedIsDurable, true},

		{"Recall", testRecall, false},
		{"RecallOfOld", testRecallOfOld, false},
		{"RecallOfAnotherSource", testRecallOfAnotherSource, false},
		{"RecallAfterLostAnswers", testRecallAfterLostAnswers, false},
		{"FencedSender", testFencedSender, false},
		{"LowerTerm", testLowerTerm, false},

		{"AcknowledgedAfterHandler", testAcknowledgedAfterHandler, false},
		{"FailingHandlerHoldsItsKey", testFailingHandlerHoldsItsKey, false},
		{"FailingKeyHoldsNobodyUp", testFailingKeyHoldsNobodyUp, false},
		{"PanicHoldsNobodyUp", testPanicHoldsNobodyUp, false},
		{"DeadLetter", testDeadLetter, false},
		{"BoundedInFlight", testBoundedInFlight, false},
		{"ConsumerSurvivesOutage", testConsumerSurvivesOutage, true},
		{"OrderAfterKill", testOrderAfterKill, false},
		{"OrderAfterKillOfBoth", testOrderAfterKillOfBoth, true},
		{"CloseTwice", testCloseTwice, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.restarts {
				t.Parallel()
			}
			c.test(t, open(t))
		})
	}
}

// direct opens a publisher without a proxy.
func (h Harness) direct(t *testing.T) postrider.Publisher { return h.publisher(t, h.Server) }

func (h Harness) publisher(t *testing.T, address string) postrider.Publisher {
	t.Helper()
	p := h.Publisher(t, address)
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Errorf("closing the publisher: %v", err)
		}
	})
	return p
}

// proxied opens a publisher behind a proxy.
func (h Harness) proxied(t *testing.T) (postrider.Publisher, *flaky.Proxy) {
	t.Helper()
	proxy := h.proxy(t)
	return h.publisher(t, proxy.Addr()), proxy
}

func (h Harness) proxy(t *testing.T) *flaky.Proxy {
	t.Helper()
	if h.Server == "" {
		t.Skip("n/a: there is no network in between")
	}
	return flaky.Listen(t, h.Server)
}

func (h Harness) needsRestart(t *testing.T) {
	t.Helper()
	if h.Restart == nil {
		t.Skip("n/a: the server cannot be restarted here")
	}
	if h.SlowRestart {
		need.Long(t, "the server takes long to start")
	}
}
