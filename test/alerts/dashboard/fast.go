package dashboard

func howFast() row {
	return row{title: "How fast?", panels: []ask{
		{kind: "timeseries", title: "In and out", unit: "cps", width: 12, runbook: "docs/operations/backlog-growing.md",
			about: "Numbers of the log, which grow by at least one with each message, against messages confirmed by each feed's destination.",
			queries: []query{
				{"max by (database) (rate(postrider_log_position" + inDatabase + rate + "))", "into {{database}}"},
				{perSecond("postrider_published_messages_total"), "out of " + feedName}}},
		{kind: "timeseries", title: "From enqueue to confirmation", unit: "s", warn: 5, width: 12, runbook: "docs/operations/backlog-growing.md",
			queries: []query{
				{quantile("0.5", "postrider_publish_latency_seconds", "feed", ofFeed), "{{feed}} p50"},
				{quantile("0.95", "postrider_publish_latency_seconds", "feed", ofFeed), "{{feed}} p95"},
				{quantile("0.99", "postrider_publish_latency_seconds", "feed", ofFeed), "{{feed}} p99"}}},
		{kind: "timeseries", title: "One call of the destination", unit: "s", width: 8, runbook: "docs/operations/broker-down.md",
			queries: []query{
				{quantile("0.5", "postrider_publish_call_duration_seconds", "feed", ofFeed), "{{feed}} p50"},
				{quantile("0.99", "postrider_publish_call_duration_seconds", "feed", ofFeed), "{{feed}} p99"}}},
		{kind: "timeseries", title: "Payloads confirmed", unit: "Bps", width: 8,
			queries: []query{{"sum by (feed) (rate(postrider_published_bytes_total" + ofFeed + rate + "))", "{{feed}}"}}},
		{kind: "timeseries", title: "Enqueued by processes that say so", unit: "cps", width: 8,
			queries: []query{{"sum by (result) (rate(postrider_enqueued_messages_total" + inJob + rate + "))", "{{result}}"}}},
		{kind: "timeseries", title: "Handled", unit: "cps", width: 8,
			queries: []query{{"sum by (consumer, result) (rate(postrider_handled_messages_total" + inJob + rate + "))", "{{consumer}} {{result}}"}}},
		{kind: "timeseries", title: "One call of a handler", unit: "s", width: 8,
			queries: []query{{quantile("0.99", "postrider_handle_duration_seconds", "consumer", inJob), "{{consumer}} p99"}}},
		{kind: "timeseries", title: "From enqueue to handled", unit: "s", width: 8,
			queries: []query{{quantile("0.99", "postrider_delivery_latency_seconds", "consumer", inJob), "{{consumer}} p99"}}},
	}}
}
