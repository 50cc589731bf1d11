package planted

// consumer lists bugs that repeat or skip effects.
var consumer = []Bug{
	{
		ID:   "F69",
		Name: "a short memory",
		// The inbox forgets what it has received before the last redelivery can arrive.
		Does:   "A message that comes again after some seconds has its effect again.",
		Breaks: []string{"I5"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-pause", "consumer-kill", "backend-terminate"}, Faults: 12, Minutes: 1.5, Rate: 500},
		Tests:  []Test{{"store/postgres", "^TestInboxWindow$"}},
		Plant: []Change{
			{
				"store/postgres/sql/functions/inbox.sql",
				"  DELETE FROM @schema@.inbox_strays s WHERE (s.consumer, s.id) IN (\n",
				"  DELETE FROM @schema@.inbox i WHERE i.at < clock_timestamp() - interval '1 second';\n" +
					"  DELETE FROM @schema@.inbox_strays s WHERE (s.consumer, s.id) IN (\n",
			},
			{"inbox/run.go", "maintainEvery = time.Minute", "maintainEvery = time.Second"},
		},
	},
	{
		ID:   "F70",
		Name: "two transactions",
		// The record of a message commits before its effect is done, in a separate transaction.
		Does:   "A message whose effect has failed or was cut off is taken for a repetition.",
		Breaks: []string{"I5"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Only: []string{"relay-pause", "consumer-kill", "backend-terminate"}, Faults: 12, Minutes: 1.5, Rate: 500},
		Tests:  []Test{{"store/postgres", "^TestInbox$"}},
		Plant: []Change{{
			"store/postgres/inbox_handle.go",
			"\tvar fresh []int\n",
			"\tif err := t.commit(ctx); err != nil {\n\t\treturn nil, err\n\t}\n" +
				"\tif t, err = s.db.begin(ctx); err != nil {\n\t\treturn nil, err\n\t}\n\tvar fresh []int\n",
		}},
	},
	{
		ID:   "F72",
		Name: "check, then act",
		// Whether a key is new is looked up once and then trusted: without a lock, and without a
		// second check when the response is recorded.
		Does:   "Two requests with the same key at the same time are both carried out.",
		Breaks: []string{"I5"},
		Hunt:   Hunt{To: []string{"redis", "http"}, Minutes: 0.5, Rate: 300},
		Tests:  []Test{{"store/postgres", "^TestIdempotency$/^pg15$/^release$"}, {"test/proof/campaign/calls", "^TestCalls$"}},
		Plant: []Change{
			{"store/postgres/sql/functions/idempotency.sql", "    IF NOT pg_try_advisory_xact_lock(", "    IF false AND NOT pg_try_advisory_xact_lock("},
			{
				"store/postgres/sql/functions/idempotency.sql",
				"          expires = CASE WHEN i.expires <= clock_timestamp() THEN excluded.expires ELSE i.expires END\n" +
					"      WHERE @schema@.idempotency_state(i, of_fingerprint, of_token) IS NULL;",
				"          expires = CASE WHEN i.expires <= clock_timestamp() THEN excluded.expires ELSE i.expires END;",
			},
			{"store/postgres/sql/functions/idempotency.sql", "    RETURN FOUND;\n  END IF;", "    RETURN true;\n  END IF;"},
			{"store/postgres/sql/functions/idempotency.sql", "  RETURN FOUND;\nEND\n", "  RETURN true;\nEND\n"},
		},
	},
}
