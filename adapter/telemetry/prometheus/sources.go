package prometheus

import (
	"slices"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/postrider/postrider/broker/intake"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/reconcile"
	"github.com/postrider/postrider/relay"
)

// feedKey identifies a feed of a database.
type feedKey struct{ database, feed string }

// AddRelay exports a relay's Stats until remove is called. Call remove after the relay has stopped:
// later counts are lost. Several relays of one feed are added up.
func (m *Metrics) AddRelay(database, feed string, stats func() relay.Stats) (remove func()) {
	return m.relays.attach(feedKey{label(database), label(feed)}, stats)
}

func addRelayStats(to *relay.Stats, s relay.Stats, live bool) {
	to.Published += s.Published
	to.Refused += s.Refused
	to.Retried += s.Retried
	to.Deferred += s.Deferred
	to.Dead += s.Dead
	to.Reads += s.Reads
	to.Settles += s.Settles
	to.Balances += s.Balances
	to.Fenced += s.Fenced
	to.Resets += s.Resets
	if !live {
		return
	}
	to.Blocked += s.Blocked
	to.Shards += s.Shards
	to.Quota += s.Quota
	to.Members = max(to.Members, s.Members) // each relay sees all members
	to.Failing += s.Failing
	to.Buffered += s.Buffered
	to.Paused += s.Paused // any reason counts
}

func sendRelay(to chan<- client.Metric, key feedKey, s *relay.Stats) {
	for _, f := range []struct {
		*family
		value int64
	}{
		{publishedMessages, s.Published}, {refusedMessages, s.Refused}, {retriedMessages, s.Retried},
		{deferrals, s.Deferred}, {deadMessages, s.Dead}, {leasesLost, s.Fenced}, {storeResets, s.Resets},
		{shardsFailing, int64(s.Failing)}, {relayBlocked, int64(s.Blocked)}, {shardsHeld, int64(s.Shards)},
		{shardsQuota, int64(s.Quota)}, {relayMembers, int64(s.Members)}, {bufferedMessages, int64(s.Buffered)},
	} {
		f.send(to, float64(f.value), key.database, key.feed)
	}
	relayPaused.send(to, flag(s.Paused != ""), key.database, key.feed)
	storeCalls.send(to, float64(s.Reads), key.database, key.feed, "read")
	storeCalls.send(to, float64(s.Settles), key.database, key.feed, "settle")
	storeCalls.send(to, float64(s.Balances), key.database, key.feed, "balance")
}

// AddInbox exports the Stats of a consumer's inbox until remove is called. Several of one name are
// added up.
func (m *Metrics) AddInbox(consumer string, stats func() inbox.Stats) (remove func()) {
	return m.inboxes.attach(label(consumer), stats)
}

func addInboxStats(to *inbox.Stats, s inbox.Stats, _ bool) {
	to.Handled += s.Handled
	to.Repeated += s.Repeated
	to.Waiting += s.Waiting
	to.Failed += s.Failed
	to.Dead += s.Dead
	to.Late += s.Late
}

func sendInbox(to chan<- client.Metric, consumer string, s *inbox.Stats) {
	inboxMessages.send(to, float64(s.Handled), consumer, "handled")
	inboxMessages.send(to, float64(s.Repeated), consumer, "repeated")
	inboxMessages.send(to, float64(s.Waiting), consumer, "waiting")
	inboxMessages.send(to, float64(s.Failed), consumer, "failed")
	inboxMessages.send(to, float64(s.Dead), consumer, "dead")
	inboxMessages.send(to, float64(s.Late), consumer, "late")
}

// AddConsumer exports the Stats of a consumer without an inbox until remove is called. Several of
// one name are added up.
func (m *Metrics) AddConsumer(name string, stats func() intake.Stats) (remove func()) {
	return m.consumers.attach(label(name), stats)
}

func addConsumerStats(to *intake.Stats, s intake.Stats, live bool) {
	to.Dead += s.Dead
	if live {
		to.Waiting += s.Waiting
		to.Failing += s.Failing
		to.Stopped += s.Stopped
	}
}

func sendConsumer(to chan<- client.Metric, consumer string, s *intake.Stats) {
	consumerKeys.send(to, float64(s.Failing-s.Stopped), consumer, "failing")
	consumerKeys.send(to, float64(s.Stopped), consumer, "stopped")
	consumerWaiting.send(to, float64(s.Waiting), consumer)
	consumerDead.send(to, float64(s.Dead), consumer)
}

// reconciler is a source of figures for several jobs.
type reconciler struct {
	stats func() []reconcile.Stats
	ok    map[string]int64 // successful runs by job, as last exported
}

// AddReconciler exports the Stats of a reconciler's jobs until remove is called. Jobs of one name
// are added up.
func (m *Metrics) AddReconciler(stats func() []reconcile.Stats) (remove func()) {
	p := &reconciler{stats: stats, ok: make(map[string]int64)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reconcilers = append(m.reconcilers, p)
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.reconcilers = slices.DeleteFunc(m.reconcilers, func(other *reconciler) bool { return other == p })
	}
}

func (m *Metrics) collectReconcilers(to chan<- client.Metric) {
	type sum struct{ ok, failed, found, fixed int64 }
	jobs := make(map[string]sum)
	m.mu.Lock()
	for _, p := range m.reconcilers {
		for _, s := range p.stats() {
			job := label(s.Job)
			// The two counters are not read atomically; their difference must not fall, or it would
			// look like a restart.
			p.ok[job] = max(p.ok[job], s.Runs-s.Failed)
			j := jobs[job]
			jobs[job] = sum{j.ok + p.ok[job], j.failed + s.Failed, j.found + s.Found, j.fixed + s.Fixed}
		}
	}
	m.mu.Unlock()
	for job, s := range jobs {
		reconcilerRuns.send(to, float64(s.ok), job, "ok")
		reconcilerRuns.send(to, float64(s.failed), job, "error")
		reconcilerFound.send(to, float64(s.found), job)
		reconcilerFixed.send(to, float64(s.fixed), job)
	}
}
