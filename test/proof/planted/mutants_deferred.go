package planted

// deferredMutants break the functions for deferred messages.
var deferredMutants = []Bug{
	{
		ID:    "M91",
		Name:  "defer: what waits for nothing stays",
		Does:  "A message that is deferred again after the one before it has gone is never sent, and blocks its key.",
		Tests: []Test{suiteTest("DeferAgainAfterWork")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/deferred.sql",
				"WHERE d.ctid = ANY (waiting) AND d.status || '' = 'waiting') k;",
				"WHERE d.ctid = ANY (waiting) AND d.status || '' = 'waiting' AND d.seq = seqs[1]) k;",
			},
		},
	},
	{
		ID:    "M92",
		Name:  "conclude: the next message is not made due",
		Does:  "The messages behind a failed one are never sent.",
		Tests: []Test{suiteTest("DueBehindHead")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/deferred.sql",
				"SELECT DISTINCT k.key FROM unnest(of_shards || late_shards, of_keys || late_keys) AS k(shard, key)",
				"SELECT DISTINCT k.key FROM unnest(late_shards, late_keys) AS k(shard, key)",
			},
		},
	},
}
