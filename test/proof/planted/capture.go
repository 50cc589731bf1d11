package planted

// capture: how messages get into the log and are found there.
var capture = []Bug{
	{
		ID:   "F01",
		Name: "cursor by number",
		// A reader that asks for numbers above the last one it has seen. Ours asks twice: for numbers above the floor, and for those below it
		// that belong to transactions in flight at the last snapshot. Without the second question it is the cursor of the catalogue.
		Does:   "Messages of transactions that commit late are never read.",
		Breaks: []string{"I1"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Minutes: 0.5, Rate: 300},
		Tests:  []Test{{"test/e2e", "^TestHistory$"}},
		Plant: []Change{{
			"store/postgres/sql/functions/relay.sql",
			"least(min(coalesce(first[x.nth], 0)), lo[i])",
			"coalesce(min(lo[i]), lo[i])",
		}},
	},
	{
		ID:   "F03",
		Name: "no lock on the key",
		// Writers that lock the row of their aggregate before they enqueue keep the order without us. For the others Enqueue locks the key, if it
		// is told to: that lock is missing.
		Does:   "Of two transactions of a key, the one that commits first may be sent last.",
		Breaks: []string{"I3", "I4"},
		Hunt:   Hunt{To: []string{"redis"}, Minutes: 1, Rate: 2000},
		Tests:  []Test{{"store/postgres", "^TestLockKeys$"}},
		Plant: []Change{{
			"store/postgres/outbox_insert.go",
			"if e.lockKeys {",
			"if false {",
		}},
	},
	{
		ID:   "F04",
		Name: "rows are shared out, not keys",
		// SKIP LOCKED hands the rows of one key to different relays. Our relays share out shards, and the shard follows from the key. Here it
		// follows from the row, so that neighbours of a key are sent by different relays at the same time.
		Does:   "Two relays send messages of one key at the same time.",
		Breaks: []string{"I3", "I4"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Minutes: 0.5, Rate: 300},
		Tests:  []Test{{"test/e2e", "^TestHistory$"}},
		Plant: []Change{{
			"store/postgres/sql/schema/001.sql",
			"RETURN @schema@.shard_of(coalesce(@schema@.order_key(key, aggregate_type, aggregate_id), id::text), shards);",
			"RETURN @schema@.shard_of(id::text, shards);",
		}},
	},
	{
		ID:   "F08",
		Name: "blind retry",
		// The transactor asks the server what has become of a COMMIT that was not answered. Here it takes no answer for a failure.
		Does:   "A transaction is run again that had committed: its business rows and its messages are there twice.",
		Breaks: []string{"I5"},
		Hunt:   Hunt{To: []string{"redis"}, Only: []string{"backend-terminate"}, Faults: 8, Minutes: 1, Rate: 200, Calls: 60},
		Tests:  []Test{{"test/unitofwork", "^TestLostCommitAnswers$"}},
		Plant: []Change{{
			"store/postgres/transactor.go",
			"committed, doubt := t.resolve(ctx, asks, mark)",
			"committed, doubt := false, error(nil)",
		}},
	},
}
