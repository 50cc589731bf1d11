package planted

// moveMutants change how the number of shards changes, and how tenants are read separately.
var moveMutants = []Bug{
	{
		ID:    "M62",
		Name:  "move: does not wait for holders",
		Does:  "Relays lose shards while they send: messages come twice.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"IF EXISTS (SELECT FROM @schema@.cursors c WHERE c.feed = feed_name AND NOT c.released\n",
				"IF false AND EXISTS (SELECT FROM @schema@.cursors c WHERE c.feed = feed_name AND NOT c.released\n",
			},
		},
	},
	{
		ID:    "M63",
		Name:  "move: to the earliest place",
		Does:  "Messages are sent twice.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"ORDER BY pg_snapshot_xmax(p.s) DESC, (SELECT count(*) FROM pg_snapshot_xip(p.s)), p.lo DESC",
				"ORDER BY pg_snapshot_xmax(p.s), (SELECT count(*) FROM pg_snapshot_xip(p.s)) DESC, p.lo",
			},
		},
	},
	{
		ID:    "M64",
		Name:  "move: with shards at different places",
		Does:  "Messages are skipped, or sent twice.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"(c.s1::text <> move.s::text OR c.s2 IS NOT NULL)) THEN",
				"false) THEN",
			},
		},
	},
	{
		ID:    "M65",
		Name:  "move: starts forgotten",
		Does:  "Messages of long transactions are never sent.",
		Tests: []Test{storeTest("TestChangeBesideLateWriters")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"clock_timestamp(), move.s, move.lo, move.starts,\n",
				"clock_timestamp(), move.s, move.lo, array_fill(move.lo, ARRAY[cardinality(move.starts)]),\n",
			},
		},
	},
	{
		ID:    "M66",
		Name:  "move: the floor too high",
		Does:  "Messages that commit while shards change are never sent.",
		Tests: []Test{storeTest("TestChangeBesideLateWriters")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"clock_timestamp(), move.s, move.lo, move.starts,\n",
				"clock_timestamp(), move.s, move.hi, move.starts,\n",
			},
		},
	},
	{
		ID:    "M67",
		Name:  "move: deferred messages stay",
		Does:  "Deferred messages are never sent, or out of order.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"  IF top IS NOT NULL THEN\n",
				"  IF false THEN\n",
			},
		},
	},
	{
		ID:    "M68",
		Name:  "move: numbers from 0",
		Does:  "A relay that slept sends what its successor sends.",
		Tests: []Test{storeTest("TestChangeFencesOldHolders")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"SELECT feed_name, s, l.n + 1, true,",
				"SELECT feed_name, s, CASE WHEN s < was THEN l.n + 1 ELSE 0 END, true,",
			},
		},
	},
	{
		ID:    "M69",
		Name:  "move: balance does not wait for a step",
		Does:  "A relay reads beyond the place where shards change: messages come twice.",
		Tests: []Test{storeTest("TestNobodyTakesAShardDuringAStep")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"  PERFORM pg_advisory_xact_lock_shared(hashtextextended('@schema@.balance/'",
				"  PERFORM (hashtextextended('@schema@.balance/'",
			},
		},
	},
	{
		ID:    "M70",
		Name:  "move: balance does not let go",
		Does:  "A change of the number of shards never begins.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"WHEN feed.paused OR move.feed IS NOT NULL AND move.s IS NULL THEN 0",
				"WHEN feed.paused THEN 0",
			},
		},
	},
	{
		ID:    "M71",
		Name:  "move: balance takes what waits",
		Does:  "A change of the number of shards never ends.",
		Tests: []Test{storeTest("TestChangeOfShards")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    CONTINUE WHEN c.s1::text = move.s::text AND c.s2 IS NULL;  -- it waits for the others there\n",
				"",
			},
		},
	},
	{
		ID:    "M72",
		Name:  "slice: begins too late",
		Does:  "Messages of a tenant that had a backlog are never sent.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"  was.shard := number;\n",
				"  was.shard := number;\n  was.s1 := pg_current_snapshot();\n",
			},
		},
	},
	{
		ID:    "M73",
		Name:  "slice: cut from a held shard",
		Does:  "Messages of a tenant with a slice are sent twice.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"IF NOT coalesce(was.released, false) OR of_shard",
				"IF of_shard",
			},
		},
	},
	{
		ID:    "M74",
		Name:  "slice: merged at another place",
		Does:  "Messages of a tenant that had a slice are never sent.",
		Tests: []Test{storeTest("TestSlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"part.released AND whole.released AND part.s1::text = whole.s1::text\n",
				"part.released AND whole.released\n",
			},
		},
	},
	{
		ID:    "M75",
		Name:  "slice: its number free too soon",
		Does:  "A relay that slept sends what its successor sends.",
		Tests: []Test{storeTest("TestSleeperOfASlice")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/shards.sql",
				"c.shard = slice AND c.n < part.n;",
				"c.shard = slice;",
			},
		},
	},
}
