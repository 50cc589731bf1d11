package planted

// cursorMutants change which messages a cursor has passed.
var cursorMutants = []Bug{
	{
		ID:    "M01",
		Name:  "floor: one read too early",
		Does:  "Messages of transactions that commit late are never sent.",
		Tests: []Test{storeTest("TestLateBesideTheFloor")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"f.accept(request, result, safe)",
				"f.accept(request, result, max(safe, f.floor.safe))",
			},
		},
	},
	{
		ID:    "M02",
		Name:  "floor: without a transaction of our own",
		Does:  "Messages of transactions that commit late are never sent, where little else happens.",
		Tests: []Test{storeTest("TestLateBesideTheFloor")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"  IF take_xid THEN\n",
				"  IF false THEN\n",
			},
		},
	},
	{
		ID:    "M03",
		Name:  "floor: from last_value",
		Does:  "The first message of all is never sent.",
		Tests: []Test{storeTest("TestFirstMessage")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"drawn := coalesce(pg_sequence_last_value('@schema@.message_seq'), 0);",
				"SELECT q.last_value INTO drawn FROM @schema@.message_seq q;",
			},
		},
	},
	{
		ID:    "M04",
		Name:  "floor: from last_value, when a member joins",
		Does:  "The first message of all is never sent.",
		Tests: []Test{storeTest("TestFirstMessage")},
		Plant: []Change{
			{
				"store/postgres/floor.go",
				"SELECT coalesce(pg_sequence_last_value('@schema@.message_seq'), 0), coalesce(",
				"SELECT (SELECT last_value FROM @schema@.message_seq), coalesce(",
			},
		},
	},
	{
		ID:    "M05",
		Name:  "floor: the number that the read itself has seen",
		Does:  "Messages of transactions that commit late are never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"newPoint(result.snapshot, safe, points",
				"newPoint(result.snapshot, result.drawn, points",
			},
		},
	},
	{
		ID:    "M06",
		Name:  "hi: too low by one",
		Does:  "The newest message waits for the next one, or is never sent.",
		Tests: []Test{suiteTest("LateCommitIsNotLost")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"SELECT q.last_value INTO hi FROM",
				"SELECT q.last_value - 1 INTO hi FROM",
			},
		},
	},
	{
		ID:    "M07",
		Name:  "hi: of the read before",
		Does:  "The end of a window that is read in pages is never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"s.at.opened(to, got.began, result.hi)",
				"s.at.opened(to, got.began, min(safe, result.hi))",
			},
		},
	},
	{
		ID:    "M08",
		Name:  "scan: cut by rows",
		Does:  "What lies behind a full page is never sent.",
		Tests: []Test{suiteTest("SpansShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    IF began + looks[i] < top THEN\n",
				"    IF false THEN\n",
			},
			{
				"store/postgres/sql/functions/relay.sql",
				"ORDER BY m.seq OFFSET 0) m",
				"ORDER BY m.seq LIMIT looks[i]) m",
			},
		},
	},
	{
		ID:    "M09",
		Name:  "scan: says it has reached one more than it has",
		Does:  "Now and then a message of a large backlog is never sent.",
		Tests: []Test{suiteTest("SpansShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"      top := reached;\n",
				"      top := reached - 1;\n",
			},
		},
	},
	{
		ID:    "M10",
		Name:  "scan: reads behind where it says it stopped",
		Does:  "Messages of a large backlog are sent twice.",
		Tests: []Test{suiteTest("SpansShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"      top := reached;\n",
				"",
			},
		},
	},
	{
		ID:    "M11",
		Name:  "page: cut behind the message that does not fit",
		Does:  "A message at the end of a page is never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/read.go",
				"s.bound, keep = s.seqs[i-1], i",
				"s.bound, keep = s.seqs[i], i",
			},
		},
	},
	{
		ID:    "M12",
		Name:  "page: cut, and the rest of the window skipped",
		Does:  "What does not fit into a page is never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/read.go",
				"s.bound, keep = s.seqs[i-1], i",
				"s.bound, keep = end, i",
			},
		},
	},
	{
		ID:    "M13",
		Name:  "page: an empty one ends the window",
		Does:  "What lies behind a stretch of other shards is never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"if got.bound != noCut {",
				"if got.bound != noCut && len(got.seqs) > 0 {",
			},
		},
	},
	{
		ID:    "M14",
		Name:  "page: one that met another shard ends the window",
		Does:  "A shard that was behind the others skips the rest of their window.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/read.go",
				"case s.at.inside() && s.upto < s.at.hi:",
				"case s.at.inside() && s.upto > s.at.hi:",
			},
		},
	},
	{
		ID:    "M15",
		Name:  "starts: ignored in a new point",
		Does:  "Messages of long transactions are never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"if j, ok := slices.BinarySearch(o.inFlight, xid); ok {",
				"if j, ok := slices.BinarySearch(o.inFlight, xid); ok && false {",
			},
		},
	},
	{
		ID:    "M16",
		Name:  "starts: from the newer floor",
		Does:  "Messages of transactions that commit late are never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"start := o.lo\n",
				"start := p.lo\n",
			},
		},
	},
	{
		ID:    "M17",
		Name:  "starts: forgotten in the ledger",
		Does:  "After a take-over, messages of long transactions are never sent.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"copy(p.starts, starts)\n",
				"for i := range p.starts {\n\t\tp.starts[i] = lo\n\t}\n",
			},
		},
	},
	{
		ID:    "M18",
		Name:  "began: where the last transaction began",
		Does:  "A shard that approaches a stop skips messages.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"began = min(began, p.starts[i])",
				"began = max(began, p.starts[i])",
			},
		},
	},
	{
		ID:    "M19",
		Name:  "began: looks at those that are still in flight",
		Does:  "A shard that approaches a stop skips messages of long transactions.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"BinarySearch(to.inFlight, xid); !ok {",
				"BinarySearch(to.inFlight, xid); ok {",
			},
		},
	},
	{
		ID:    "M20",
		Name:  "stop: wherever the window ends",
		Does:  "Before the number of shards changes, messages are skipped.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"return at != nil && !l.read.inside() && l.read.from.snapshot == at.snapshot",
				"return at != nil && !l.read.inside()",
			},
		},
	},
	{
		ID:    "M21",
		Name:  "stop: not approached",
		Does:  "A change of the number of shards never ends.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"if at != nil && !l.read.inside() {",
				"if at != nil && l.read.inside() {",
			},
		},
	},
	{
		ID:    "M22",
		Name:  "idle: long transactions forgotten",
		Does:  "A message that commits late is sent when the next one is written.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"if start < seq {\n",
				"if start < 0 {\n",
			},
		},
	},
	{
		ID:    "M23",
		Name:  "idle: the floor forgotten",
		Does:  "A message that commits late is sent when the next one is written.",
		Tests: []Test{cursorTest},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"l.read.inside() || l.read.from.lo < drawn {",
				"l.read.inside() {",
			},
		},
	},
	{
		ID:    "M24",
		Name:  "idle: a new shard forgotten",
		Does:  "What a stopped relay has left is sent when the next message is written.",
		Tests: []Test{storeTest("TestIdleMemberTakesOver")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"\t\t\tf.idle = nil\n\t\t\tf.owned[shard]",
				"\t\t\tf.owned[shard]",
			},
		},
	},
	{
		ID:    "M25",
		Name:  "read_log: what the window does not end with",
		Does:  "Messages are sent twice.",
		Tests: []Test{suiteTest("LateCommitBetweenPages")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				" AND pg_visible_in_snapshot(m.xid, to_s)\n",
				"\n",
			},
		},
	},
	{
		ID:    "M26",
		Name:  "read_log: what was read before",
		Does:  "Messages beside long transactions are sent again and again.",
		Tests: []Test{suiteTest("LateCommitIsNotLost")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				" AND NOT pg_visible_in_snapshot(m.xid, from_s)",
				"",
			},
		},
	},
	{
		ID:    "M27",
		Name:  "read_log: in the order of transactions",
		Does:  "Of two messages of a key, the later one is sent first; of a large backlog, some are never sent.",
		Tests: []Test{storeTest("TestCrossedTransactions")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"ORDER BY m.seq OFFSET 0) m",
				"ORDER BY m.xid, m.seq OFFSET 0) m",
			},
		},
	},
	{
		ID:    "M28",
		Name:  "read_log: no tenant",
		Does:  "With a slice, messages without a tenant are never sent.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"OR m.tenant_id IS NULL OR NOT coalesce(others[i] -> m.shard::text ? m.tenant_id, false));",
				"OR NOT (others[i] -> m.shard::text ? m.tenant_id));",
			},
		},
	},
	{
		ID:    "M29",
		Name:  "read_log: slices ignored",
		Does:  "Messages of a tenant with a slice are sent twice.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"AND (others[i] IS NULL OR",
				"AND (true OR",
			},
		},
	},
	{
		ID:    "M30",
		Name:  "read_log: a slice of everybody",
		Does:  "Messages of other tenants are sent twice.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"AND (tenants[i] IS NULL OR",
				"AND (true OR",
			},
		},
	},
	{
		ID:    "M31",
		Name:  "an empty key is a key",
		Does:  "Messages without a key wait for each other, all in one shard.",
		Tests: []Test{storeTest("TestEmptyKeyIsNone")},
		Plant: []Change{
			{
				"store/postgres/sql/schema/001.sql",
				"RETURN CASE WHEN key <> '' THEN key",
				"RETURN CASE WHEN key IS NOT NULL THEN key",
			},
		},
	},
	{
		ID:    "M32",
		Name:  "number before transaction ID",
		Does:  "Messages of transactions that take their ID late are never sent.",
		Tests: []Test{storeTest("TestTransactionIDComesBeforeNumber")},
		Plant: []Change{
			{
				"store/postgres/sql/schema/001.sql",
				"  xid            xid8        NOT NULL DEFAULT pg_current_xact_id(),\n  seq            bigint      NOT NULL DEFAULT nextval('@schema@.message_seq'),\n",
				"  seq            bigint      NOT NULL DEFAULT nextval('@schema@.message_seq'),\n  xid            xid8        NOT NULL DEFAULT pg_current_xact_id(),\n",
			},
		},
	},
}
