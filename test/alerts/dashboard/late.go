package dashboard

func keepingUp() row {
	const runbooks = "docs/operations/"
	return row{title: "Is it keeping up?", panels: []ask{
		{kind: "stat", title: "Waiting messages", unit: "short", warn: 1000, width: 5, runbook: runbooks + "backlog-growing.md",
			queries: []query{{"sum(" + largest("postrider_pending_messages") + ")", ""}}},
		{kind: "stat", title: "Oldest waits for", unit: "s", warn: 60, critical: 900, width: 5, runbook: runbooks + "backlog-growing.md",
			queries: []query{{"max(" + largest("postrider_oldest_pending_age_seconds") + ")", ""}}},
		{kind: "stat", title: "Last canary", unit: "s", warn: 10, critical: 15, width: 5, runbook: runbooks + "relay-stuck.md",
			about:   "How long ago the newest canary was enqueued that has come through the slowest shard. More than 15 s: the feed stands.",
			queries: []query{{"max(" + largest("postrider_canary_age_seconds") + ")", ""}}},
		{kind: "stat", title: "Feeds without a relay", unit: "short", warn: 1, critical: 1, width: 5, runbook: runbooks + "relay-stuck.md",
			queries: []query{{"count(" + largest("postrider_feed_relays") + " == 0) or vector(0)", ""}}},
		{kind: "stat", title: "Paused feeds", unit: "short", warn: 1, width: 4, runbook: runbooks + "broker-down.md",
			queries: []query{{"sum(" + largest("postrider_feed_paused") + ")", ""}}},
		{kind: "timeseries", title: "Waiting messages", unit: "short", warn: 1000, width: 8, runbook: runbooks + "backlog-growing.md",
			queries: []query{{largest("postrider_pending_messages"), feedName}}},
		{kind: "timeseries", title: "Oldest waits for", unit: "s", warn: 60, critical: 900, width: 8, runbook: runbooks + "backlog-growing.md",
			queries: []query{{largest("postrider_oldest_pending_age_seconds"), feedName}}},
		{kind: "timeseries", title: "Last canary", unit: "s", warn: 15, width: 8, runbook: runbooks + "relay-stuck.md",
			queries: []query{{largest("postrider_canary_age_seconds"), feedName}}},
		{kind: "timeseries", title: "Slowest shards", unit: "s", warn: 60, width: 8, runbook: runbooks + "relay-stuck.md",
			queries: []query{{"topk(5, max by (database, feed, shard, tenant) (postrider_shard_oldest_pending_age_seconds" + inFeed + "))", feedName + " {{shard}} {{tenant}}"}}},
		{kind: "timeseries", title: "Tenants that are read apart", unit: "short", width: 8, runbook: runbooks + "tenant-flood.md",
			queries: []query{{`max by (database, feed, tenant) (sum without (shard) (postrider_shard_pending_messages{job=~"$job",database=~"$database",feed=~"$feed",tenant!=""}))`, "{{tenant}} in " + feedName}}},
		{kind: "table", title: "Alerts that fire", unit: "short", width: 8, runbook: "docs/alerts.md",
			queries: []query{{`max by (alertname, severity, database, feed, consumer, instance) (ALERTS{alertname=~"Postrider.*",alertstate="firing"})`, ""}}},
	}}
}
