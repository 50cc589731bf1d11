package planted

// broker lists bugs in trusting a broker's confirmations.
var broker = []Bug{
	{
		ID:   "F41",
		Name: "not mandatory",
		// RabbitMQ confirms unroutable messages. Only with the mandatory flag, which is missing
		// here, does it return them first.
		Does:   "Messages that no queue takes count as sent.",
		Breaks: []string{"I1", "I11"},
		Hunt:   Hunt{To: []string{"rabbitmq"}, Only: []string{"poison"}, Faults: 16, Minutes: 1, Rate: 300},
		Tests:  []Test{{"broker/rabbitmq", "^TestReturnsAreSeenBeforeConfirms$"}},
		Plant: []Change{{
			"broker/rabbitmq/channel.go",
			"PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, true, false, p)",
			"PublishWithDeferredConfirm(l.link.p.cfg.Exchange, route, false, false, p)",
		}},
	},
	{
		ID:   "F42",
		Name: "the confirmation before the return",
		// Returned messages arrive on another channel than confirmations. Postrider reads it after
		// the confirmations, when they must be there. Here it reads it before, so that messages
		// that are returned meanwhile are missed, as with a buffered channel.
		Does:   "Most messages that no queue takes count as sent.",
		Breaks: []string{"I1", "I11"},
		Hunt:   Hunt{To: []string{"rabbitmq"}, Only: []string{"poison"}, Faults: 16, Minutes: 1, Rate: 300},
		Tests:  []Test{{"broker/rabbitmq", "^TestReturnsAreSeenBeforeConfirms$"}},
		Plant: []Change{
			{
				"broker/rabbitmq/channel.go",
				"\tfor i := range l.sent {\n\t\tf := &l.sent[i]\n",
				"\treturned, ok := <-l.returned\n\tfor i := range l.sent {\n\t\tf := &l.sent[i]\n",
			},
			{"broker/rabbitmq/channel.go", "\treturned, ok := <-l.returned\n\tif !ok {\n", "\tif !ok {\n"},
		},
	},
	{
		ID:   "F48",
		Name: "the broker removes duplicates",
		// JetStream removes duplicates within a window. A consumer that relies on it skips the
		// inbox for messages that come from there.
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
