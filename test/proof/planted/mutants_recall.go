package planted

// recallMutants change how publishers fence former owners, and find out what has arrived.
var recallMutants = []Bug{
	{
		ID:    "M117",
		Name:  "redis: fence is not watched",
		Does:  "What a former owner still has under way is stored: messages come twice.",
		Tests: []Test{{"broker/redis", "^TestSuite$/^FencedSender$"}},
		Plant: []Change{
			{
				"broker/redis/fence.go",
				`appendCommand(appendCommand(out, "WATCH", fence), "GET", fence)`,
				`appendCommand(appendCommand(out, "EXISTS", fence), "GET", fence)`,
			},
		},
	},
	{
		ID:    "M76",
		Name:  "redis: term of the fence is ignored",
		Does:  "What a former owner sends is stored: messages come twice.",
		Tests: []Test{{"broker/redis", "^TestSuite$/^LowerTerm$"}},
		Plant: []Change{
			{
				"broker/redis/sender.go",
				"if s.line.watched[fence] > s.from.Term {",
				"if s.line.watched[fence] > s.from.Term+1<<40 {",
			},
		},
	},
	{
		ID:    "M77",
		Name:  "redis: fence is watched no longer, and trusted",
		Does:  "A former owner is not fenced where others use its connection.",
		Tests: []Test{{"broker/redis", "^TestFencedAfterOthers$"}},
		Plant: []Change{
			{
				"broker/redis/sender.go",
				"	n, aborted := s.line.reply()\n	s.line.watched = nil\n",
				"	n, aborted := s.line.reply()\n",
			},
		},
	},
	{
		ID:    "M78",
		Name:  "redis: lower term lowers the fence",
		Does:  "A former owner can take the fence down again.",
		Tests: []Test{{"broker/redis", "^TestSuite$/^LowerTerm$"}},
		Plant: []Change{
			{
				"broker/redis/fence.go",
				"tonumber(term) > tonumber(ARGV[1])",
				"false",
			},
		},
	},
	{
		ID:    "M79",
		Name:  "redis: transaction that was refused counts as stored",
		Does:  "Messages are lost.",
		Tests: []Test{{"broker/redis", "^TestManySendersOnOneConnection$"}},
		Plant: []Change{
			{
				"broker/redis/sender.go",
				"fill(s.outcomes, errWaiting) // a fence has changed",
				"fill(s.outcomes, nil) // a fence has changed",
			},
		},
	},
	{
		ID:    "M80",
		Name:  "redis: only the first page is read",
		Does:  "Messages come twice.",
		Tests: []Test{{"broker/redis", "^TestSuite$/^Recall$"}},
		Plant: []Change{
			{
				"broker/redis/recall.go",
				"if len(page) < recallPage {",
				"if len(page) <= recallPage {",
			},
		},
	},
	{
		ID:    "M81",
		Name:  "redis: deleted entries are not noticed",
		Does:  "Messages come twice, and nothing says so.",
		Tests: []Test{{"broker/redis", "^TestRecallOfDeleted$"}},
		Plant: []Change{
			{
				"broker/redis/recall.go",
				"case !older(info.MaxDeletedEntryID, since):\n		return true",
				"case !older(info.MaxDeletedEntryID, since):\n		return false",
			},
		},
	},
	{
		ID:    "M82",
		Name:  "nats: read from too late",
		Does:  "Messages come twice once the stream's window has passed.",
		Tests: []Test{{"broker/nats", "^TestSuite$/^Recall$"}},
		Plant: []Change{
			{
				"broker/nats/recall.go",
				"since = stock.Since(since, stream.CachedInfo().TimeStamp)",
				"since = stock.Since(since, stream.CachedInfo().TimeStamp.Add(2*stock.Skew))",
			},
		},
	},
	{
		ID:    "M83",
		Name:  "nats: dropped messages are not noticed",
		Does:  "Messages come twice, and nothing says so.",
		Tests: []Test{{"broker/nats", "^TestCannotRecall$"}},
		Plant: []Change{
			{
				"broker/nats/recall.go",
				"case state.FirstSeq > 1 && ",
				"case state.FirstSeq > 1<<40 && ",
			},
		},
	},
	{
		ID:    "M87",
		Name:  "relay: what has arrived is sent",
		Does:  "After a crash, the last messages come twice.",
		Tests: []Test{{"relay", "^TestRecallAfterCrash$"}},
		Plant: []Change{
			{
				"relay/internal/doubt/book.go",
				"return own || b.former[id]",
				"return own",
			},
		},
	},
	{
		ID:    "M88",
		Name:  "relay: asks without raising its term",
		Does:  "A call whose answer was lost is stored after the question: its messages come twice.",
		Tests: []Test{{"relay/internal/doubt", "^TestFormerOwners$"}},
		Plant: []Change{
			{
				"relay/internal/doubt/book.go",
				"b.term = min(b.term+1, mostTerm)",
				"b.term = min(b.term, mostTerm)",
			},
		},
	},
	{
		ID:    "M89",
		Name:  "relay: doubts end too early",
		Does:  "After a crash with many messages under way, some come twice.",
		Tests: []Test{{"relay", "^TestRecallAfterCrash$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				" && r.reached >= 0 && passed >= r.reached && ",
				" && passed > 0 && ",
			},
		},
	},
	{
		ID:    "M90",
		Name:  "relay: lost answers are forgotten",
		Does:  "Messages whose confirmation was lost come twice.",
		Tests: []Test{{"relay", "^TestRecallAfterLostAnswers$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				"case postrider.ClassOf(err) == postrider.ClassUnknown && ",
				"case false && ",
			},
		},
	},
	{
		ID:    "M116",
		Name:  "relay: a replay counts as its message",
		Does:  "While a new owner asks what has arrived, replays are not sent, and count as delivered.",
		Tests: []Test{{"relay", "^TestRecallOfReplays$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				"case m.Repetition != \"\" || !r.book.Has(m.ID):",
				"case !r.book.Has(m.ID):",
			},
		},
	},
	{
		ID:    "M93",
		Name:  "relay: a question counts as an attempt",
		Does:  "Relays that die while they ask a slow destination make dead letters of innocent messages.",
		Tests: []Test{{"relay", "^TestSuspectAsked$"}},
		Plant: []Change{
			{
				"relay/worker.go",
				"if err := w.recall.prepare(ctx, &c.Messages[0]); err != nil {",
				"if err := ctx.Err(); err != nil {",
			},
		},
	},
	{
		ID:    "M94",
		Name:  "kafka: the fence is not looked at",
		Does:  "A relay that slept takes the transactional ID back, and sends what its successor sends.",
		Tests: []Test{{"broker/kafka", "^TestSuiteOnce$/^FencedSender$"}},
		Plant: []Change{
			{
				"broker/kafka/once.go",
				"err == nil && term > from.Term {",
				"err == nil && term < from.Term {",
			},
		},
	},
	{
		ID:    "M95",
		Name:  "kafka: uncommitted messages count as arrived",
		Does:  "Messages of a transaction that was aborted are lost.",
		Tests: []Test{{"broker/kafka", "^TestSuiteOnce$/^(RecallAfterLostAnswers|FencedSender)$"}},
		Plant: []Change{
			{
				"broker/kafka/holds.go",
				"kgo.FetchIsolationLevel(kgo.ReadCommitted())",
				"kgo.FetchIsolationLevel(kgo.ReadUncommitted())",
			},
		},
	},
	{
		ID:    "M96",
		Name:  "kafka: the transactional ID is not taken",
		Does:  "What a relay still has under way is committed after its successor has looked.",
		Tests: []Test{{"broker/kafka", "^TestSuiteOnce$/^(RecallAfterLostAnswers|FencedSender)$"}},
		Plant: []Change{
			{
				"broker/kafka/recall.go",
				"req.TransactionalID, req.TransactionTimeoutMillis = &id, int32",
				"req.TransactionalID, req.TransactionTimeoutMillis = new(id[1:]), int32",
			},
		},
	},
	{
		ID:    "M97",
		Name:  "relay: deferred messages are not asked about",
		Does:  "A message that was deferred with an unknown outcome comes twice after a restart.",
		Tests: []Test{{"relay", "^TestRecallOfDeferred$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				"case i < len(since) && !since[i].IsZero():",
				"case i < len(since) && since[i].IsZero() && false:",
			},
		},
	},
	{
		ID:    "M98",
		Name:  "relay: retries of a former owner are not asked about",
		Does:  "Deferred messages that a relay sent as it died come twice.",
		Tests: []Test{{"relay", "^TestRecallOfRetries$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				"		case !r.former.IsZero():\n			r.know(m.ID)",
				"		case r.former.After(time.Now()):\n			r.know(m.ID)",
			},
		},
	},
	{
		ID:    "M99",
		Name:  "deferred: the time of an unknown attempt is not kept",
		Does:  "A message that was deferred with an unknown outcome comes twice after a restart.",
		Tests: []Test{suiteTest("DeferUnsure")},
		Plant: []Change{
			{
				"store/postgres/sql/functions/deferred.sql",
				"m.bare, clock_timestamp() - make_interval(secs => m.age)",
				"m.bare, NULL",
			},
		},
	},
	{
		ID:    "M100",
		Name:  "relay: attempts at deferred messages do not count as sent",
		Does:  "The next owner asks about too short a time: deferred messages come twice.",
		Tests: []Test{{"relay/internal/shard", "^TestSentDeferred$"}},
		Plant: []Change{
			{
				"relay/internal/shard/machine.go",
				"earlier(m.window.oldest(), m.due.begun.oldest())",
				"earlier(m.window.oldest(), m.due.begun.done)",
			},
		},
	},
	{
		ID:    "M101",
		Name:  "postgres: the end of a former owner's window is taken for the end of the log",
		Does:  "The new owner believes that it has seen everything that the former one can have sent: messages come twice.",
		Tests: []Test{suiteTest("MoreUntilTheEnd")},
		Plant: []Change{
			{
				"store/postgres/feed.go",
				"batch.More = l.read.inside()",
				"batch.More = false",
			},
		},
	},
	{
		ID:    "M102",
		Name:  "relay: an answer covers what was recorded after the question",
		Does:  "Messages of earlier owners come twice: the question had begun too late for them.",
		Tests: []Test{{"relay/internal/doubt", "^TestRecordedWhileAsked$"}},
		Plant: []Change{
			{
				"relay/internal/doubt/book.go",
				"	if n.asking {\n		if n.later == nil {",
				"	if false {\n		if n.later == nil {",
			},
		},
	},
	{
		ID:    "M103",
		Name:  "relay: a message that joins a held name counts as never sent",
		Does:  "It comes twice when the name accepts messages again, if it had arrived without an answer.",
		Tests: []Test{{"relay/internal/shard", "^TestUnsureIsKept$"}},
		Plant: []Change{
			{
				"relay/internal/shard/due.go",
				"			if d.Unsure > 0 {\n				c.Sent = asked",
				"			if d.Unsure < 0 {\n				c.Sent = asked",
			},
		},
	},
	{
		ID:    "M104",
		Name:  "postgres: messages that are deferred already are not marked",
		Does:  "A message without a key that a dead relay had deferred is sent from the log, and again when it is due.",
		Tests: []Test{suiteTest("DeferredAreMarked")},
		Plant: []Change{
			{
				"store/postgres/read.go",
				"at.rows.deferred = append(at.rows.deferred, at.index)",
				"at.rows.deferred = at.rows.deferred[:0]",
			},
		},
	},
	{
		ID:    "M105",
		Name:  "relay: messages that are deferred already are sent from the log",
		Does:  "A message without a key that a dead relay had deferred is sent from the log, and again when it is due.",
		Tests: []Test{{"test/proof/simulation", "^TestRelay$"}},
		Plant: []Change{
			{
				"relay/internal/shard/deferral.go",
				"m.memory.arrived[msg.ID] || already:",
				"m.memory.arrived[msg.ID] || already && false:",
			},
		},
	},
	{
		ID:    "M106",
		Name:  "relay: a message that was sent is deferred again",
		Does:  "A message whose deferral was not answered comes twice.",
		Tests: []Test{{"relay/internal/shard", "^TestSentIsNotDeferred$"}},
		Plant: []Change{
			{
				"relay/internal/shard/due.go",
				"m.deferrals.sent[msgs[i].ID] = true",
				"delete(m.deferrals.sent, msgs[i].ID)",
			},
		},
	},
	{
		ID:    "M107",
		Name:  "relay: the first settlement of a new owner ends all doubts",
		Does:  "If the new owner dies soon, the next one asks about too short a time: messages come twice.",
		Tests: []Test{{"test/proof/simulation", "^TestRelay$"}},
		Plant: []Change{
			{
				"relay/worker.go",
				"w.snapshot.sent = since",
				"w.snapshot.sent = time.Time{}",
			},
		},
	},
	{
		ID:    "M108",
		Name:  "relay: doubts about deferred messages end with those about the log",
		Does:  "Deferred messages that a former owner had in flight come twice, if the new owner dies too.",
		Tests: []Test{{"relay", "^TestFormerInFlight$"}},
		Plant: []Change{
			{
				"relay/recall.go",
				"	if r.former.IsZero() {\n		return r.book.Since()\n	}\n	return r.former\n",
				"	return r.book.Since()\n",
			},
		},
	},
	{
		ID:    "M109",
		Name:  "nats: subject without a stream has stored nothing",
		Does:  "A subject that was taken from its stream for a moment comes back, and its last messages come twice.",
		Tests: []Test{{"broker/nats", "^TestRecallWithoutStream$"}},
		Plant: []Change{
			{
				"broker/nats/recall.go",
				"return postrider.NameUnavailable(errNoStream)",
				"return nil",
			},
		},
	},
	{
		ID:    "M112",
		Name:  "recall: trusts the clock of the relay",
		Does:  "A relay whose clock is ahead finds nothing that has arrived: messages come twice.",
		Tests: []Test{{"broker/internal/stock", "^TestSince$"}},
		Plant: []Change{
			{
				"broker/internal/stock/stock.go",
				"return now.Add(-time.Since(since) - Skew)",
				"return since.Add(-Skew)",
			},
		},
	},
}
