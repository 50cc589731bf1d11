package planted

// own lists bugs that Postrider itself has had, about failing messages. Campaigns cannot
// distinguish them from a slow destination.
var own = []Bug{
	{
		ID:   "P01",
		Name: "the prefix does not move",
		// Messages before confirmed ones, or to a held name, must leave the window. Here they stay.
		Does:  "A relay that stops behind a message that fails sends again what was confirmed after it.",
		Tests: []Test{{"relay", "^TestStopRepeatsNothing$"}},
		Plant: []Change{
			{"relay/internal/shard/deferral.go", "range m.window.gaps() {\n", "range m.window.gaps()[:0] {\n"},
			{"relay/internal/shard/deferral.go", "\t\tcase held && !earlier[key]:\n", "\t\tcase held && !held:\n"},
		},
	},
	{
		ID:   "P02",
		Name: "the outage of a name counts",
		// A full or missing queue is not an error of its messages.
		Does:  "Messages for a queue, topic or endpoint that accepts nothing become dead letters.",
		Tests: []Test{{"relay", "^TestNameDown$"}},
		Plant: []Change{{
			"relay/internal/shard/failure.go",
			"\t\tif e.held || e.others || e.full {\n\t\t\treturn holds\n",
			"\t\tif e.held || e.others || e.full {\n\t\t\treturn counts\n",
		}},
	},
	{
		ID:   "P03",
		Name: "no probe",
		// A held name is probed with one message at a time. Here it never is.
		Does:  "Messages for a name that accepted nothing for a while are never sent.",
		Tests: []Test{{"relay", "^TestNameDown$"}, {"relay/internal/shard", "^TestSimulation$"}},
		Plant: []Change{{
			"relay/internal/shard/names.go", "known.probing = !known.probeAt.After(now)\n", "known.probing = false\n",
		}},
	},
	{
		ID:   "P04",
		Name: "no budget of bytes",
		// A read is bounded only by the number of messages.
		Does:  "A relay holds as many messages as it may, however large they are.",
		Tests: []Test{{"relay", "^TestMemory$"}},
		Plant: []Change{{
			"relay/reader.go", "max(d.Limit>>rd.shrink, 1), max(d.Bytes>>rd.shrink, 1)\n", "max(d.Limit>>rd.shrink, 1), 0\n",
		}},
	},
}
