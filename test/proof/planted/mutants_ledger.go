package planted

// ledgerMutants change who owns a shard, and how far it was confirmed.
var ledgerMutants = []Bug{
	{
		ID:    "M33",
		Name:  "settle: in any generation",
		Does:  "After a crash of the server, messages are skipped.",
		Tests: []Test{storeTest("TestSettleOfAnEarlierGeneration")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"IF @schema@.current_generation() IS DISTINCT FROM in_generation THEN",
				"IF false THEN",
			},
		},
	},
	{
		ID:    "M34",
		Name:  "read: in any generation",
		Does:  "After a crash of the server, messages are skipped.",
		Tests: []Test{storeTest("TestRebaseUnderARelay")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"if result.generation != generation {",
				"if false {",
			},
		},
	},
	{
		ID:    "M35",
		Name:  "settle: overwrites",
		Does:  "A relay that slept past its lease takes the shard back, and what its successor has recorded is lost.",
		Tests: []Test{suiteTest("Fence")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    WHERE c.n > (SELECT k.n FROM @schema@.checkpoints k WHERE k.feed = feed_name AND k.shard = c.shard ORDER BY k.n DESC LIMIT 1)\n    ORDER BY c.shard\n    ON CONFLICT DO NOTHING\n",
				"    ORDER BY c.shard\n    ON CONFLICT (feed, shard, n) DO UPDATE SET member = excluded.member, until = excluded.until, s1 = excluded.s1, lo = excluded.lo,\n      starts = excluded.starts, s2 = excluded.s2, lo2 = excluded.lo2, starts2 = excluded.starts2, last = excluded.last, hi = excluded.hi\n",
			},
		},
	},
	{
		ID:    "M36",
		Name:  "settle: behind the newest row",
		Does:  "A relay that slept for long sends what its successor sends.",
		Tests: []Test{storeTest("TestSweepLeavesTheFence")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    WHERE c.n > (SELECT k.n FROM @schema@.checkpoints k WHERE k.feed = feed_name AND k.shard = c.shard ORDER BY k.n DESC LIMIT 1)\n",
				"",
			},
		},
	},
	{
		ID:    "M37",
		Name:  "settle: a mark of an earlier epoch",
		Does:  "Messages are skipped that nobody has confirmed.",
		Tests: []Test{suiteTest("MarkOfAnEarlierEpoch")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"case p == nil || p.shard != l:",
				"case p == nil:",
			},
		},
	},
	{
		ID:    "M38",
		Name:  "settle: back",
		Does:  "After a restart, messages are sent again that were confirmed long ago.",
		Tests: []Test{suiteTest("StaleSettleMovesNothing")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"if p.no > l.settledNo || p.no == l.settledNo && m.Done > l.settledIn {",
				"{",
			},
		},
	},
	{
		ID:    "M39",
		Name:  "settle: one more than was confirmed",
		Does:  "After a restart, a message is skipped that had failed.",
		Tests: []Test{suiteTest("SettlePartOfBatch")},
		Plant: []Change{
			{
				"store/postgres/cursor.go",
				"p.start.at(p.seqs[done-1])",
				"p.start.at(p.seqs[done])",
			},
		},
	},
	{
		ID:    "M40",
		Name:  "settle: everything that was read",
		Does:  "After a restart, messages are skipped that nobody has confirmed.",
		Tests: []Test{suiteTest("CrashRepeatsUnsettled")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"l.caughtUp = p.no == l.pages && m.Done >= len(p.seqs)",
				"l.caughtUp = true",
			},
		},
	},
	{
		ID:    "M41",
		Name:  "settle: a renewal confirms",
		Does:  "After a restart, messages are skipped that nobody has confirmed.",
		Tests: []Test{suiteTest("RenewalSettlesNothing")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"\t\tp.no = l.pages\n\t\tl.caughtUp = false\n",
				"\t\tp.no = l.pages\n",
			},
		},
	},
	{
		ID:    "M42",
		Name:  "settle: the lost answer forgotten",
		Does:  "A relay whose database connection broke gives up shards that it holds, and sends again.",
		Tests: []Test{storeTest("TestLostAnswerOfASettle")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"\tif unsure {\n",
				"\tif false && unsure {\n",
			},
		},
	},
	{
		ID:    "M43",
		Name:  "release: the position forgotten",
		Does:  "Every planned hand-over sends messages again.",
		Tests: []Test{suiteTest("ReleaseHandsOver")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"entry.add(m.Shard, l, l.move(m))",
				"at := l.settled\n\t\tif next := l.move(m); !release {\n\t\t\tat = next\n\t\t}\n\t\tentry.add(m.Shard, l, at)",
			},
		},
	},
	{
		ID:    "M44",
		Name:  "balance: a shard kept that another has had",
		Does:  "A relay that slept goes on where it was: messages are skipped.",
		Tests: []Test{suiteTest("TakenBack")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"case ok && row.n == l.n:\n",
				"case ok && row.n >= l.n:\n\t\t\tl.n = row.n\n",
			},
		},
	},
	{
		ID:    "M45",
		Name:  "balance: takes what is leased",
		Does:  "Two relays send messages of one key at the same time.",
		Tests: []Test{storeTest("TestLeaseIsKept")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"c.released OR c.until < clock_timestamp() AND c.member",
				"c.released OR c.member",
			},
		},
	},
	{
		ID:    "M46",
		Name:  "balance: does not ask who was heard",
		Does:  "After the database stood still, everything under way is sent twice.",
		Tests: []Test{storeTest("TestStandstill")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    IF NOT c.released THEN\n      SELECT min",
				"    IF false THEN\n      SELECT min",
			},
		},
	},
	{
		ID:    "M47",
		Name:  "balance: more than the fair share",
		Does:  "One relay takes all shards, and a second one has nothing to do.",
		Tests: []Test{suiteTest("FairShare")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"CONTINUE WHEN c.tenant IS NULL AND held >= fair;",
				"CONTINUE WHEN c.tenant IS NULL AND held >= fair * 2;",
			},
		},
	},
	{
		ID:    "M48",
		Name:  "balance: deaths do not count",
		Does:  "A message that kills its relay kills all of them, again and again.",
		Tests: []Test{suiteTest("Suspects")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"least(c.crashes, 999) + 1 END,",
				"0 END,",
			},
		},
	},
	{
		ID:    "M84",
		Name:  "take over: attempts forgotten",
		Does:  "After two crashes, messages of the first owner are sent again although they have arrived.",
		Tests: []Test{suiteTest("Unsure")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"least(c.crashes, 999) + 1 END, c.unsure)",
				"least(c.crashes, 999) + 1 END, NULL)",
			},
		},
	},
	{
		ID:    "M85",
		Name:  "take over: only settled attempts",
		Does:  "Messages of an owner that died before its first settlement are sent again although they have arrived.",
		Tests: []Test{suiteTest("Unsure")},
		Plant: []Change{
			{
				"store/postgres/sql/schema/001.sql",
				"coalesce(c.sent, CASE WHEN NOT c.released THEN c.at END) AS unsure",
				"c.sent AS unsure",
			},
		},
	},
	{
		ID:    "M86",
		Name:  "settle: a mark of an earlier epoch forgets attempts",
		Does:  "Messages are sent again although they have arrived.",
		Tests: []Test{suiteTest("UnsureAfterStaleMark")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"l.sent = l.taken\n",
				"l.sent = m.Sent\n",
			},
		},
	},
}
