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
	{
		ID:    "M113",
		Name:  "relay: what a filter leaves out is sent",
		Does:  "While the only destination of a feed is down, messages of other feeds pass as confirmed, and all of its own are deferred.",
		Tests: []Test{{"relay/internal/shard", "^TestLeftOut$"}},
		Plant: []Change{
			{
				"relay/internal/shard/deferral.go",
				" || m.cfg.Sends != nil && !m.cfg.Sends(msg):",
				":",
			},
		},
	},
	{
		ID:    "M114",
		Name:  "relay: what was left out keeps the stop from ending",
		Does:  "A relay that stops during an outage defers everything before a message that it leaves out.",
		Tests: []Test{{"relay/internal/shard", "^TestLeftOut$"}},
		Plant: []Change{
			{
				"relay/internal/shard/window.go",
				"	w.beginDefer(pos)\n	w.order.endDefer(pos)\n	w.skip()\n",
				"	w.beginDefer(pos)\n	w.endDefer(pos)\n",
			},
		},
	},
	{
		ID:    "M115",
		Name:  "relay: what a former owner has just deferred blocks no key",
		Does:  "A relay that is taken over while it defers messages: later messages of their keys overtake them.",
		Tests: []Test{{"relay/internal/shard", "^TestDeferredByFormerOwner$"}},
		Plant: []Change{
			{
				"relay/internal/shard/deferral.go",
				"already && key != 0 && msg.DeliverAfter.IsZero() {",
				"already && key == 1 {",
			},
		},
	},
}
