package planted

// delivery lists bugs in sending, recording what was sent, and taking over shards.
var delivery = []Bug{
	{
		ID:   "F09",
		Name: "mark first",
		// Messages handed to a shard count as settled at once.
		Does:   "A relay that dies has recorded messages as sent that it never sent.",
		Breaks: []string{"I1"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-kill", "http-500", "http-hang", "http-slow", "redis-pause"}, Faults: 12, Minutes: 1.5, Rate: 500},
		Tests:  []Test{{"relay/internal/shard", "^TestSimulation$"}},
		Plant: []Change{
			{
				"relay/internal/shard/machine.go",
				"\t\tm.inbox = append(m.inbox, run{Batch: b, bytes: bytes})\n",
				"\t\tm.inbox = append(m.inbox, run{Batch: b, bytes: bytes})\n\t\tm.mark = Mark{b, len(b.Messages), m.mark.Version + 1}\n",
			},
			{
				"relay/internal/shard/state.go",
				"\tif n, batch, done := m.window.advance(); n > 0 {\n\t\tm.mark = Mark{batch, done, m.mark.Version + 1}\n\t}\n",
				"\tm.window.advance()\n",
			},
		},
	},
	{
		ID:   "F10",
		Name: "the last answer counts",
		// In the catalogue, callbacks arrive in any order. Here the last confirmed message is
		// recorded, instead of the last one before which all are confirmed.
		Does:   "A relay that dies has recorded messages as sent that had failed while later ones arrived.",
		Breaks: []string{"I1"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-kill", "http-500", "http-hang", "http-slow", "redis-pause"}, Faults: 12, Minutes: 1.5, Rate: 500},
		Tests:  []Test{{"relay", "^TestCannotDefer$"}},
		Plant: []Change{{
			"relay/internal/shard/state.go",
			"\tif n, batch, done := m.window.advance(); n > 0 {\n",
			"\tlast := m.window.last\n\tn, batch, done := m.window.advance()\n\tif last >= m.window.first {\n" +
				"\t\tbatch, done = m.window.place(last)\n\t\tdone++\n\t}\n\tif n > 0 || batch != nil {\n",
		}},
	},
	{
		ID:   "F29",
		Name: "no token",
		// A ledger row has a number, and a relay whose number is taken has lost the shard. Here the
		// number is assigned when the row is written, and a relay recognizes its rows only by its
		// name.
		Does:   "A relay that slept past its lease overwrites what its successor has recorded, and takes the shard back.",
		Breaks: []string{"I8"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-pause"}, Faults: 8, Minutes: 1.5, Rate: 500},
		Tests:  []Test{{"test/e2e", "^TestPausedRelay$"}},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"    SELECT feed_name, c.shard, c.n, member_id, releasing,",
				"    SELECT feed_name, c.shard, (SELECT max(k.n) + 1 FROM @schema@.checkpoints k WHERE k.feed = feed_name AND k.shard = c.shard),\n" +
					"           member_id, releasing,",
			},
			{"store/postgres/feed.go", "\t\tcase ok && row.n == l.n:\n", "\t\tcase ok:\n\t\t\tl.n = row.n\n"},
		},
	},
	{
		ID:   "F30",
		Name: "no look at the lease",
		// A relay sends without checking whether its lease is still valid.
		Does:   "A relay that cannot reach the database goes on sending what another one sends at the same time.",
		Breaks: []string{"I3", "I6"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"database-silent", "http-slow", "proxy-delay"}, Faults: 12, Minutes: 1.5, Rate: 600},
		Tests:  []Test{{"relay", "^TestNothingBeginsWithoutLease$"}},
		Plant: []Change{{
			"relay/internal/shard/lease.go",
			"\treturn now.Add(min(l.timeout, left)), left > l.margin()\n",
			"\treturn now.Add(max(l.timeout, left)), true\n",
		}},
	},
	{
		ID:   "F32",
		Name: "the clock of the process",
		// Leases are written and checked by the clock of the relay's machine instead of the
		// database's.
		Does:   "A relay whose clock is ahead takes shards that others hold, and leaves leases behind that nobody takes over for hours.",
		Breaks: []string{"I9", "I8", "I1"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-clock"}, Faults: 6, Minutes: 1.5, Rate: 500},
		Plant: []Change{
			{
				"store/postgres/sql/functions/relay.sql",
				"lease interval, relay_home text DEFAULT NULL)",
				"lease interval, relay_home text, process_clock timestamptz)",
			},
			{
				"store/postgres/sql/functions/relay.sql",
				"c.until < clock_timestamp() AND c.member IS DISTINCT FROM member_id",
				"c.until < process_clock AND c.member IS DISTINCT FROM member_id",
			},
			{
				"store/postgres/sql/functions/relay.sql",
				"c.n + 1, member_id, clock_timestamp() + lease,",
				"c.n + 1, member_id, process_clock + lease,",
			},
			{
				"store/postgres/sql/functions/relay.sql",
				"  crashes smallint[], sent_ms bigint[])",
				"  crashes smallint[], sent_ms bigint[], process_clock timestamptz)",
			},
			{
				"store/postgres/sql/functions/relay.sql",
				"releasing, clock_timestamp() + lease,",
				"releasing, process_clock + lease,",
			},
			{"store/postgres/ledger.go", "$4, nullif($5, ''))", "$4, nullif($5, ''), $6)"},
			{"store/postgres/ledger.go", "leaseText(f.member.Lease), f.cfg.Home)", "leaseText(f.member.Lease), f.cfg.Home, time.Now())"},
			{"store/postgres/ledger.go", "$16, $17)", "$16, $17, $18)"},
			{"store/postgres/ledger.go", "crashes.String(), sent.String())", "crashes.String(), sent.String(), time.Now())"},
		},
	},
	{
		ID:   "F34",
		Name: "one context for all",
		// Recording progress and releasing shards use the context that ends with the relay.
		Does:   "A relay that is asked to stop does not record what it has sent last, and others send it again.",
		Breaks: []string{"I6"},
		Hunt:   Hunt{To: []string{"redis"}, Only: []string{"relay-stop"}, Faults: 10, Minutes: 1, Rate: 600},
		Tests:  []Test{{"test/e2e", "^TestRollingRestart$"}},
		Plant: []Change{
			{"relay/serve.go", "settling, stopSettling := context.WithCancel(t.ctx)", "settling, stopSettling := context.WithCancel(ctx)"},
			{
				"relay/release.go",
				"context.WithTimeout(context.WithoutCancel(ctx), t.cfg.DrainTimeout)",
				"context.WithTimeout(ctx, t.cfg.DrainTimeout)",
			},
		},
	},
}
