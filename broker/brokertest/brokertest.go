// Package brokertest is the suite that every broker passes: what the ports [postrider.Publisher] and
// [postrider.Consumer] promise, as tests against the real server. What is published through the one is read back
// through the other.
//
// A broker's own test is one function:
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

// Harness is a broker under test. Publishers and consumers use the format CloudEvents, the default.
type Harness struct {
	// Server is the host and port of the server. Empty means that there is no network in between: what needs a bad one
	// is left out.
	Server string
	// Create makes a topic, queue, subject or stream that is empty and nobody else's, and returns its name.
	Create func(t *testing.T) string
	// Publisher opens a publisher that reaches the server at the given host and port, and only there. The suite closes it.
	Publisher func(t *testing.T, address string) postrider.Publisher
	// Consumer opens a consumer of the name that handles up to limit messages at a time, as the only member of its group.
	// Consumers of one name follow each other and belong to one group. A new group begins with the oldest message. The
	// suite closes it.
	Consumer func(t *testing.T, name, group string, limit int) postrider.Consumer
	// Burying opens a consumer like Consumer does, whose messages are dead letters after two attempts and go to another name.
	// Nil means that consumers of the broker know nothing of the kind, or that dead letters are no name of their own.
	Burying func(t *testing.T, name, group, dead string) postrider.Consumer
	// Member opens a consumer like Consumer does, each time as another member of the group, with the shortest time after
	// which it takes over from one that is dead. The suite opens some in processes of their own, by running the test
	// again, and kills them. Nil leaves out the tests that need it.
	Member func(t *testing.T, name, group string, limit int) postrider.Consumer
	// Plain sends messages as somebody does who knows nothing of Postrider: without an ID, headers and a key. Nil means that the
	// broker itself gives each an ID that its sender can see.
	Plain func(t *testing.T, name string, bodies ...string)
	// Missing makes a name that there is nothing for, Forbidden one that the publisher may not send to, and Full one that takes
	// no more. Nil means that the broker knows nothing of the kind.
	Missing, Forbidden, Full Fault
	// Restart kills the server as a crash would and starts it again. Nil leaves out the test that needs it.
	Restart func(t *testing.T)

	Abilities
}

// Fault makes a name that accepts nothing, and a function that puts an end to that. The function is nil if the test cannot
// do that.
type Fault func(t *testing.T) (name string, end func())

// Abilities are in what brokers differ.
type Abilities struct {
	// MaxPayload is a size of payloads, in bytes, that is refused for good, while one of half the size is accepted.
	// Zero means that there is no such size below postrider.MaxPayload.
	MaxPayload int
	// NoName is what can never be a name. Empty means that everything can.
	NoName string
	// OneLineHeaders means that header values with line breaks, or blanks at their ends, are refused, not carried.
	OneLineHeaders bool
	// FoldsHeaderNames means that header names arrive in another case.
	FoldsHeaderNames bool
	// NoPlace means that the broker does not say where a message stands: one without an ID cannot be recognised.
	NoPlace bool
	// SignedIDs means that consumers know a message by the ID that it was sent with, because nothing else is signed.
	SignedIDs bool
	// Dedup means that a message published twice arrives once.
	Dedup bool
	// Unordered means that consumers get messages in no order, whatever the publisher keeps.
	Unordered bool
	// OutageOfNames means that a server which cannot be reached is an outage of the names that it has: others may have others.
	OutageOfNames bool
	// NamesByType means that names are no logs of their own, so that messages without a topic are named after their type, and not
	// after that of their aggregate.
	NamesByType bool
	// OneAtATime means that Publish is slow, one round trip a message: the suite sends fewer of them.
	OneAtATime bool
	// SlowTakeover means that others take long to find out that a consumer is dead: tests of that are part of the long form.
	SlowTakeover bool
	// SlowRestart means that the server takes long to start: tests that restart it are part of the long form.
	SlowRestart bool
}

// Run tests the broker that open returns. Tests have names of their own, and run beside each other once those are done that restart the
// server.
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
