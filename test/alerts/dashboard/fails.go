package dashboard

func whatFails() row {
	return row{title: "What fails?", panels: []ask{
		{kind: "stat", title: "Dead letters", unit: "short", warn: 1, width: 6, runbook: "docs/operations/message-refused.md",
			queries: []query{{`sum(max by (database, feed) (postrider_deferred_messages{job=~"$job",database=~"$database",feed=~"$feed",status="dead"}))`, ""}}},
		{kind: "stat", title: "Waiting for retry", unit: "short", warn: 11, width: 6, runbook: "docs/operations/message-refused.md",
			queries: []query{{`sum(max by (database, feed) (postrider_deferred_messages{job=~"$job",database=~"$database",feed=~"$feed",status="retry"}))`, ""}}},
		{kind: "stat", title: "Blocked keys", unit: "short", warn: 1, width: 6, runbook: "docs/operations/key-blocked.md",
			queries: []query{{"sum(" + largest("postrider_blocked_keys") + ")", ""}}},
		{kind: "stat", title: "Shards that fail", unit: "short", warn: 1, width: 6, runbook: "docs/operations/broker-down.md",
			queries: []query{{"sum(postrider_shards_failing" + inFeed + ")", ""}}},
		{kind: "timeseries", title: "Deferred", unit: "short", width: 8, runbook: "docs/operations/message-refused.md",
			queries: []query{{"max by (database, feed, status) (postrider_deferred_messages" + inFeed + ") > 0", feedName + " {{status}}"}}},
		{kind: "timeseries", title: "Not confirmed", unit: "cps", width: 8, runbook: "docs/operations/broker-down.md",
			queries: []query{{"sum by (feed, class) (rate(postrider_publish_failures_total" + ofFeed + rate + "))", "{{feed}} {{class}}"}}},
		{kind: "timeseries", title: "What relays did about it", unit: "cps", width: 8, runbook: "docs/operations/message-refused.md",
			queries: []query{
				{perSecond("postrider_refused_messages_total"), feedName + " refused"},
				{perSecond("postrider_retried_messages_total"), feedName + " sent again"},
				{perSecond("postrider_deferrals_total"), feedName + " deferred"},
				{perSecond("postrider_dead_messages_total"), feedName + " dead"}}},
		{kind: "timeseries", title: "Blocked keys", unit: "short", width: 8, runbook: "docs/operations/key-blocked.md",
			queries: []query{
				{largest("postrider_blocked_keys"), feedName},
				{"max by (database, consumer) (postrider_consumer_blocked_keys" + inDatabase + ")", "consumer {{consumer}}"}}},
		{kind: "timeseries", title: "Deferred by consumers", unit: "short", width: 8, runbook: "docs/consuming.md",
			queries: []query{{"max by (database, consumer, status) (postrider_consumer_deferred_messages" + inDatabase + ") > 0", "{{consumer}} {{status}}"}}},
		{kind: "timeseries", title: "Inboxes", unit: "cps", width: 8, runbook: "docs/consuming.md",
			queries: []query{{"sum by (consumer, verdict) (rate(postrider_inbox_messages_total" + inJob + rate + "))", "{{consumer}} {{verdict}}"}}},
		{kind: "timeseries", title: "Names that accept nothing", unit: "s", warn: 300, width: 24, runbook: "docs/operations/broker-down.md",
			queries: []query{{"max by (database, feed, name) (postrider_destination_problem_age_seconds" + inFeed + ")", feedName + " {{name}}"}}},
		{kind: "timeseries", title: "Reconcilers that failed", unit: "short", width: 12, runbook: "docs/reconcile.md",
			queries: []query{{`sum by (reconciler) (increase(postrider_reconciler_runs_total{job=~"$job",result="error"}[1h]))`, "{{reconciler}}"}}},
		{kind: "timeseries", title: "What reconcilers found in an hour", unit: "short", width: 12, runbook: "docs/reconcile.md",
			queries: []query{
				{"sum by (reconciler) (increase(postrider_reconciler_found_total" + inJob + "[1h]))", "{{reconciler}} found"},
				{"sum by (reconciler) (increase(postrider_reconciler_fixed_total" + inJob + "[1h]))", "{{reconciler}} sent"}}},
	}}
}
