package planted

// retentionMutants change what is deleted, and when.
var retentionMutants = []Bug{
	{
		ID:    "M49",
		Name:  "reclaim: the newest writer forgotten",
		Does:  "A message that commits late is deleted before it was sent.",
		Tests: []Test{storeTest("TestReclaimBesideTheNewestWriter")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"WHERE newest > coalesce(c.starts[x.nth], 0) AND",
				"WHERE newest > coalesce(c.starts[x.nth], 0) + 1 AND",
			},
		},
	},
	{
		ID:    "M50",
		Name:  "reclaim: what was in flight forgotten",
		Does:  "Messages of long transactions are deleted before they were sent.",
		Tests: []Test{storeTest("TestReclaimBesideOldTransaction")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"bool_or(newest > c.lo OR EXISTS (",
				"bool_or(newest > c.lo OR false AND EXISTS (",
			},
		},
	},
	{
		ID:    "M51",
		Name:  "reclaim: what the cursor has not passed",
		Does:  "Messages are deleted before they were sent.",
		Tests: []Test{storeTest("TestReclaim")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"bool_or(newest > c.lo OR EXISTS",
				"bool_or(false OR EXISTS",
			},
		},
	},
	{
		ID:    "M52",
		Name:  "reclaim: when one feed has passed",
		Does:  "Messages are deleted that another destination has not got.",
		Tests: []Test{storeTest("TestReclaim")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"INTO waiting FROM @schema@.cursors c;",
				"INTO waiting FROM @schema@.cursors c WHERE c.feed = (SELECT min(f.name) FROM @schema@.feeds f);",
			},
		},
	},
	{
		ID:    "M53",
		Name:  "reclaim: no second look",
		Does:  "A message that is committed while the slot is locked is deleted.",
		Tests: []Test{storeTest("TestReclaimLooksAgainUnderTheLock")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"    IF NOT @schema@.slot_passed(slot) THEN\n      RETURN false;",
				"    IF false THEN\n      RETURN false;",
			},
		},
	},
	{
		ID:    "M54",
		Name:  "reclaim: dead letters forgotten",
		Does:  "The content of a dead letter is lost.",
		Tests: []Test{storeTest("TestReclaimKeepsTheContentOfADeadLetter")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"m WHERE d.bare)",
				"m WHERE false)",
			},
		},
	},
	{
		ID:    "M55",
		Name:  "reclaim: without feeds",
		Does:  "What was written before the first relay came is deleted.",
		Tests: []Test{storeTest("TestReclaimWithoutFeeds")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"    RETURN false;  -- no feed at all",
				"    RETURN true;  -- no feed at all",
			},
		},
	},
	{
		ID:    "M56",
		Name:  "reclaim: by a foreign ledger",
		Does:  "In a restored database, messages are deleted before they were sent.",
		Tests: []Test{storeTest("TestReclaimInForeignDatabase")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"  IF NOT @schema@.at_home() THEN\n    RETURN false;",
				"  IF false THEN\n    RETURN false;",
			},
		},
	},
	{
		ID:    "M58",
		Name:  "sweep: the window forgotten",
		Does:  "A repeated command is carried out twice.",
		Tests: []Test{storeTest("TestSweepKeepsWhatIsInTheWindow")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"clock_timestamp() - @schema@.dedup_window();",
				"clock_timestamp();",
			},
		},
	},
	{
		ID:    "M59",
		Name:  "sweep: the newest row",
		Does:  "A feed that was quiet for ten minutes sends everything again, or nothing any more.",
		Tests: []Test{storeTest("TestLedgerIsSwept")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"OR k.n = head.n)",
				"OR false)",
			},
		},
	},
	{
		ID:    "M60",
		Name:  "sweep: its place too high",
		Does:  "Rows of the ledger stay for ever.",
		Tests: []Test{storeTest("TestLedgerIsSwept")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"VALUES (head.feed, head.shard, stays)",
				"VALUES (head.feed, head.shard, stays + 1)",
			},
		},
	},
	{
		ID:    "M61",
		Name:  "sweep: a locked key passed",
		Does:  "Dedup keys stay for ever.",
		Tests: []Test{storeTest("TestSweepComesBackForALockedKey")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/retention.sql",
				"coalesce((SELECT k.at FROM @schema@.dedup_keys k WHERE k.at >= oldest AND k.at < expiry ORDER BY k.at LIMIT 1), expiry))",
				"expiry)",
			},
		},
	},
}
