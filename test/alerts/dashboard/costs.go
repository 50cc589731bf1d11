package dashboard

func whatItCosts() row {
	const bloat = "docs/operations/database-bloat.md"
	database := func(metric string) string { return "max by (database) (" + metric + inDatabase + ")" }
	return row{title: "What does it cost?", panels: []ask{
		{kind: "timeseries", title: "Calls of the database", unit: "cps", width: 8, stacked: true,
			queries: []query{{"sum by (database, call) (rate(postrider_store_calls_total" + inFeed + rate + "))", "{{database}} {{call}}"}}},
		{kind: "timeseries", title: "Calls for each message", unit: "short", width: 8,
			queries: []query{{perSecond("postrider_store_calls_total") + " / (" + perSecond("postrider_published_messages_total") + " > 0)", feedName}}},
		{kind: "timeseries", title: "Connections", unit: "percentunit", warn: 0.8, width: 8, runbook: "docs/operations/README.md",
			queries: []query{{database("postrider_database_connections") + " / " + database("postrider_database_max_connections"), "{{database}}"}}},
		{kind: "timeseries", title: "Size", unit: "bytes", width: 8, runbook: bloat,
			queries: []query{
				{database("postrider_database_size_bytes"), "{{database}}"},
				{"topk(5, max by (database, table) (postrider_table_size_bytes" + inDatabase + "))", "{{database}} {{table}}"}}},
		{kind: "timeseries", title: "Slots of the log in use", unit: "percentunit", warn: 1, width: 8, runbook: bloat,
			queries: []query{{database("postrider_log_slots_used") + " / " + database("postrider_log_slots"), "{{database}}"}}},
		{kind: "timeseries", title: "Dead rows", unit: "short", warn: 100_000, width: 8, runbook: bloat,
			queries: []query{{"topk(5, max by (database, table) (postrider_table_dead_rows" + inDatabase + "))", "{{database}} {{table}}"}}},
		{kind: "timeseries", title: "Oldest transaction and snapshot", unit: "s", warn: 300, critical: 3600, width: 12, runbook: bloat,
			queries: []query{
				{database("postrider_oldest_transaction_age_seconds"), "{{database}} transaction"},
				{database("postrider_oldest_snapshot_age_seconds"), "{{database}} snapshot"}}},
		{kind: "timeseries", title: "Held back by replication slots", unit: "bytes", warn: 1 << 30, width: 12, runbook: bloat,
			queries: []query{{"max by (database, slot) (postrider_replication_slot_retained_bytes" + inDatabase + ")", "{{database}} {{slot}}"}}},
	}}
}
