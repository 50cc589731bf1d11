package prometheus

// Metrics of the store; see [Metrics.AddDatabase].
var (
	pendingMessages = gauge(late, "pending_messages",
		"Messages that are not delivered, without those deferred. Estimated when there are very many.", "database", "feed")
	oldestPending = gauge(late, "oldest_pending_age_seconds",
		"How long ago the oldest of the pending messages was enqueued; 0 if there is none.", "database", "feed")
	shardPending = gauge(late, "shard_pending_messages",
		"Pending messages of a shard, or of one tenant of it that is read apart.", "database", "feed", "shard", "tenant")
	shardOldest = gauge(late, "shard_oldest_pending_age_seconds",
		"How long ago the oldest of these was enqueued; 0 if there is none.", "database", "feed", "shard", "tenant")
	canaryAge = gauge(late, "canary_age_seconds",
		"How long ago the newest canary was enqueued that has come through, of the shard where that is longest. Absent without canaries.",
		"database", "feed")
	deferredMessages = gauge(late, "deferred_messages",
		"Messages deferred, by status: scheduled, retry, held, waiting, dead, parked. Each is counted up to 10000.",
		"database", "feed", "status")
	blockedKeys = gauge(late, "blocked_keys",
		"Keys whose messages wait behind one that has failed.", "database", "feed")
	problemAge = gauge(fails, "destination_problem_age_seconds",
		"For how long the destination, or the name of a queue, topic, subject or endpoint, has accepted nothing. Empty name: the destination as a whole. Absent where all is well; of a feed up to 20 names are shown.",
		"database", "feed", "name")
	feedPaused = gauge(late, "feed_paused",
		"1 if an operator has paused the feed.", "database", "feed")
	feedRelays = gauge(holds, "feed_relays",
		"Relays that serve the feed, of all processes: those heard from within their lease.", "database", "feed")
	consumerDeferred = gauge(late, "consumer_deferred_messages",
		"Messages that a consumer has deferred, by status as above.", "database", "consumer", "status")
	consumerBlocked = gauge(late, "consumer_blocked_keys",
		"Keys whose messages wait in a consumer's inbox behind one that has failed.", "database", "consumer")

	consumerSilent = gauge(late, "consumer_heard_age_seconds",
		"How long ago a process last said that it works for a consumer. Absent if none has for a week, or ever.", "database", "consumer")

	logPosition = gauge(fast, "log_position",
		"A number that grows by at least one with each message that any program enqueues; its growth is the rate.", "database")
)

// Metrics of this process as an observer.
var (
	enqueuedMessages = counter(fast, "enqueued_messages_total",
		"Messages that this process has written, by result: accepted, repeated (told before), failed. A rollback is not seen.", "result")
	publishedMessages = counter(fast, "published_messages_total",
		"Messages that the destination has confirmed to the relays of this process.", "database", "feed")
	publishLatency = histogram(fast, "publish_latency_seconds",
		"Time from when a message was made, or was due if that is later, to its confirmation by the destination.", "feed")
	publishCall = histogram(fast, "publish_call_duration_seconds",
		"Time of one call of the destination, with all the messages of a batch.", "feed")
	publishedBytes = counter(fast, "published_bytes_total",
		"Bytes of the payloads that the destination has confirmed.", "feed")
	handleDuration = histogram(fast, "handle_duration_seconds",
		"Time of one call of a consumer's handler, also of those that fail.", "consumer")
	handledMessages = counter(fast, "handled_messages_total",
		"Calls of a consumer's handler, by result: ok, error.", "consumer", "result")
	deliveryLatency = histogram(fast, "delivery_latency_seconds",
		"Time from when a message was made, or was due if that is later, until a consumer had handled it.", "consumer")
	inboxMessages = counter(fast, "inbox_messages_total",
		"What the inbox did with messages, by verdict: handled, repeated, waiting, failed, dead (with the late ones), late.",
		"consumer", "verdict")

	consumerKeys = gauge(fails, "consumer_failing_keys",
		"Keys that wait for an attempt of a consumer without an inbox, by state: failing, stopped (it has used up its attempts, and there is no dead-letter destination).",
		"consumer", "state")
	consumerWaiting = gauge(fails, "consumer_waiting_messages",
		"Messages that a consumer without an inbox has received, and that wait for an attempt or behind another one of their key.", "consumer")
	consumerDead = counter(fails, "consumer_dead_messages_total",
		"Messages that a consumer without an inbox has moved to its dead-letter destination.", "consumer")

	publishFailures = counter(fails, "publish_failures_total",
		"Messages not confirmed by a call, each time, by class: permanent, unavailable, unknown. Without those not tried because an earlier one of their key had failed.",
		"feed", "class")
)

// Metrics of relays; see [Metrics.AddRelay].
var (
	refusedMessages = counter(fails, "refused_messages_total",
		"Messages that the destination will never accept, each time.", "database", "feed")
	retriedMessages = counter(fails, "retried_messages_total",
		"Messages sent again after a failure.", "database", "feed")
	deferrals = counter(fails, "deferrals_total",
		"Messages deferred: because they are not due, have failed, or wait behind one that has.", "database", "feed")
	deadMessages = counter(fails, "dead_messages_total",
		"Messages that became dead letters.", "database", "feed")
	shardsFailing = gauge(fails, "shards_failing",
		"Shards held whose last call of the destination confirmed nothing: the breaker.", "database", "feed")
	relayBlocked = gauge(fails, "relay_blocked_keys",
		"Keys whose messages wait behind one that has failed, in the shards held by this process.", "database", "feed")

	storeCalls = counter(costs, "store_calls_total",
		"Calls of the database by relays, by call: read, settle, balance.", "database", "feed", "call")

	shardsHeld = gauge(holds, "shards_held",
		"Shards that the relays of this process hold.", "database", "feed")
	shardsQuota = gauge(holds, "shards_quota",
		"Shards that would be their fair share.", "database", "feed")
	relayMembers = gauge(holds, "relay_members",
		"Relays that serve the feed, of all processes, as this one sees it.", "database", "feed")
	bufferedMessages = gauge(holds, "buffered_messages",
		"Messages read and not yet confirmed, or confirmed behind one that is not.", "database", "feed")
	leasesLost = counter(holds, "leases_lost_total",
		"Shards lost to another relay, or to a lease that ran out.", "database", "feed")
	storeResets = counter(holds, "store_resets_total",
		"How often the store has taken back what it had handed out, as after a crash of the database.", "database", "feed")
	relayPaused = gauge(holds, "relay_paused",
		"1 if an operator must act before the relay can work; its log says why.", "database", "feed")
)

// Metrics of the database; see [Metrics.AddDatabase].
var (
	databaseSize = gauge(costs, "database_size_bytes", "Size of the whole database.", "database")
	tableSize    = gauge(costs, "table_size_bytes",
		"Size of a table of the schema, with its partitions, indexes and TOAST.", "database", "table")
	tableDead = gauge(costs, "table_dead_rows",
		"Rows that are deleted and not yet cleaned up, estimated.", "database", "table")
	oldestTransaction = gauge(costs, "oldest_transaction_age_seconds",
		"How long the oldest open transaction has been open; 0 if there is none.", "database")
	oldestSnapshot = gauge(costs, "oldest_snapshot_age_seconds",
		"Age of the oldest snapshot that keeps vacuum from cleaning up; 0 if there is none.", "database")
	slotRetained = gauge(costs, "replication_slot_retained_bytes",
		"Bytes of the server's log that a replication slot holds back.", "database", "slot")
	logSlotsUsed = gauge(costs, "log_slots_used", "Slots of the ring of the log that hold messages.", "database")
	logSlots     = gauge(costs, "log_slots", "Slots of the ring of the log.", "database")
	connections  = gauge(costs, "database_connections", "Connections that are open at the server.", "database")
	connLimit    = gauge(costs, "database_max_connections", "Connections that the server allows.", "database")
)

// Metrics of reconcilers; see [Metrics.AddReconciler]. The label is not "job", because Prometheus
// itself sets that on everything it scrapes.
var (
	reconcilerRuns = counter(reconcilers, "reconciler_runs_total",
		"Runs of a job in this process, by result: ok, error.", "reconciler", "result")
	reconcilerFound = counter(reconcilers, "reconciler_found_total", "Facts found without their effect.", "reconciler")
	reconcilerFixed = counter(reconcilers, "reconciler_fixed_total", "Messages sent for them.", "reconciler")
)

// Metrics about the figures themselves.
var (
	buildInfo = gauge(self, "build_info",
		"1, with the versions of Postrider and Go that this process was built with.", "version", "go_version")
	databaseUp = gauge(self, "database_up",
		"1 if the database answered when it was last asked how the feeds stand.", "database")
	figuresAge = gauge(self, "figures_age_seconds",
		"How long ago that was asked which the figures of the database tell. They vanish when they are too old.", "database")
)
