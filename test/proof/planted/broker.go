package planted

// broker: what a broker's word is worth.
var broker = []Bug{
	{
		ID:   "F41",
		Name: "not mandatory",
		// RabbitMQ confirms what no queue takes. Only with the flag that is missing here does it send it back before.
		Does:   "Messages that no queue takes count as sent.",
		Breaks: []string{"I1", "I11"},
		Hunt:   Hunt{To: []string{"rabbitmq"}, Only: []string{"poison"}, Faults: 16, Minutes: 1, Rate: 300},
		Tests:  []Test{{"broker/rabbitmq", "^TestReturnsAreSeenBeforeConfirms$"}},
		Plant: []Change{{
			"broker/rabbitmq/lane.go",
			"PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, true, false, p)",
			"PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, false, false, p)",
		}},
	},
	{
		ID:   "F42",
		Name: "the confirmation before the return",
		// What was sent back comes by another way than confirmations. Ours asks for it after the confirmations have come, by which it is there.
		// Here it asks before, so that what comes back meanwhile is missed, as where that way has a buffer.
		Does:   "Most messages that no queue takes count as sent.",
		Breaks: []string{"I1", "I11"},
		Hunt:   Hunt{To: []string{"rabbitmq"}, Only: []string{"poison"}, Faults: 16, Minutes: 1, Rate: 300},
		Tests:  []Test{{"broker/rabbitmq", "^TestReturnsAreSeenBeforeConfirms$"}},
		Plant: []Change{
			{
				"broker/rabbitmq/lane.go",
				"\tfor i := range l.sent {\n\t\tf := &l.sent[i]\n",
				"\treturned, ok := <-l.returned\n\tfor i := range l.sent {\n\t\tf := &l.sent[i]\n",
			},
			{"broker/rabbitmq/lane.go", "\treturned, ok := <-l.returned\n\tif !ok {\n", "\tif !ok {\n"},
		},
	},
	{
		ID:   "F48",
		Name: "the broker removes duplicates",
		// JetStream removes those that come within a window. A consumer that believes in it does without the inbox's memory, for messages that
		// come from there.
		Does:   "What comes again after the window, or is delivered again, has its effect again.",
		Breaks: []string{"I5"},
		Hunt:   Hunt{To: []string{"nats"}, Only: []string{"relay-kill", "consumer-kill"}, Faults: 12, Minutes: 1.5, Rate: 500},
		Plant: []Change{{
			"store/postgres/inbox_handle.go",
			"\t\tif outcomes[i] == 'f' {\n",
			"\t\tif outcomes[i] == 'r' && msgs[i].Topic == \"nats\" {\n\t\t\toutcomes[i] = 'f'\n\t\t}\n\t\tif outcomes[i] == 'f' {\n",
		}},
	},
}
