package planted

// capture lists bugs in writing messages to the log and finding them there.
var capture = []Bug{
	{
		ID:   "F01",
		Name: "cursor by number",
		// A reader that queries numbers above the last one it has seen. Ours queries twice: numbers
		// above the floor, and those below it that belong to transactions in flight at the last
		// snapshot. Without the second query it is the cursor of the catalogue.
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
		// Writers that lock the row of their aggregate before they enqueue keep the order without
		// us. For the others Enqueue can lock the key: that lock is missing here.
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
		// SKIP LOCKED distributes the rows of one key to different relays. Our relays divide
		// shards, and the shard depends on the key. Here it depends on the row, so that different
		// relays send adjacent messages of a key concurrently.
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
		// The transactor queries the server for the outcome of a COMMIT without a response. Here it
		// treats a missing response as a failure.
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
