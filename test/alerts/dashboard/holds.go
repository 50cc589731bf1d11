package dashboard

func whoHoldsWhat() row {
	const stuck = "docs/operations/relay-stuck.md"
	process := func(metric string) string { return "sum by (instance, database, feed) (" + metric + inFeed + ")" }
	return row{title: "Who holds what?", panels: []ask{
		{kind: "stat", title: "Relays that answer", unit: "short", width: 6, runbook: stuck,
			queries: []query{{`sum(up{job=~"$job"})`, ""}}},
		{kind: "stat", title: "Relays that do not", unit: "short", warn: 1, width: 6, runbook: stuck,
			queries: []query{{`count(up{job=~"$job"} == 0) or vector(0)`, ""}}},
		{kind: "stat", title: "Databases out of reach", unit: "short", warn: 1, critical: 1, width: 6, runbook: "docs/operations/README.md",
			queries: []query{{"count(max by (database) (postrider_database_up" + inDatabase + ") == 0) or vector(0)", ""}}},
		{kind: "stat", title: "Relays that wait for an operator", unit: "short", warn: 1, critical: 1, width: 6, runbook: "docs/operations/restore-or-clone.md",
			queries: []query{{"sum(postrider_relay_paused" + inFeed + ")", ""}}},
		{kind: "timeseries", title: "Shards held", unit: "short", width: 8, stacked: true, runbook: stuck,
			queries: []query{{process("postrider_shards_held"), "{{instance}} " + feedName}}},
		{kind: "timeseries", title: "Short of the fair share", unit: "short", width: 8, runbook: stuck,
			queries: []query{{process("postrider_shards_quota") + " - " + process("postrider_shards_held"), "{{instance}} " + feedName}}},
		{kind: "timeseries", title: "Relays of a feed", unit: "short", width: 8, runbook: stuck,
			queries: []query{
				{largest("postrider_feed_relays"), feedName},
				{largest("postrider_relay_members"), feedName + " as relays see it"}}},
		{kind: "timeseries", title: "Shards lost", unit: "short", width: 8, runbook: stuck,
			queries: []query{{"sum by (instance, database, feed) (increase(postrider_leases_lost_total" + inFeed + "[5m]))", "{{instance}} " + feedName}}},
		{kind: "timeseries", title: "Begun again after a crash of the database", unit: "short", width: 8, runbook: stuck,
			queries: []query{{"sum by (instance, database, feed) (increase(postrider_store_resets_total" + inFeed + "[5m]))", "{{instance}} " + feedName}}},
		{kind: "timeseries", title: "Read and not confirmed", unit: "short", width: 8, stacked: true,
			queries: []query{
				{process("postrider_buffered_messages"), "{{instance}} " + feedName}}},
		{kind: "timeseries", title: "Age of the figures", unit: "s", width: 12, runbook: "docs/operations/README.md",
			queries: []query{{"max by (instance, database) (postrider_figures_age_seconds" + inDatabase + ")", "{{instance}} {{database}}"}}},
		{kind: "timeseries", title: "Keys blocked in the shards held", unit: "short", width: 12, runbook: "docs/operations/key-blocked.md",
			queries: []query{{process("postrider_relay_blocked_keys"), "{{instance}} " + feedName}}},
	}}
}
