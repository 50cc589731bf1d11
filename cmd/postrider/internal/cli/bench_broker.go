package cli

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/postrider/postrider/broker"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/cmd/postrider/internal/bench"
)

func (a *app) benchBrokerCommand() *cobra.Command {
	o := bench.Options{Writers: 4, Rate: 1000, Phase: 10 * time.Second, Databases: 1}
	var to benchTarget
	var keep bool
	cmd := &cobra.Command{
		Use:   "broker",
		Short: "Measure how fast a backlog reaches a broker",
		Long: "Sends messages with the broker's own Go client alone, confirmed and pipelined, and then a backlog of as many\n" +
			"through the relay to the same place, in turn. The rates are medians. Both send bare payloads (format raw), unless\n" +
			"--set format=cloudevents says otherwise of the relay. What was sent stays at the broker, under a name of its own.\n\n" +
			"With --once it also measures a relay that cannot ask the broker what has arrived, and the latency of both at 1,000\n" +
			"messages a second.",
		Example: "  postrider bench broker --broker nats --url nats://127.0.0.1:4222 --messages 200000\n" +
			"  postrider bench broker --broker kafka --keys 1 --json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			driver, settings, err := to.find()
			if err != nil {
				return err
			}
			if settings.Values["format"] == "" {
				settings.Values["format"] = string(codec.Raw) // like the messages that the client sends alone
			}
			if o.Topic == "" {
				o.Topic = fmt.Sprintf("postrider-bench-%d", time.Now().Unix())
			}
			s := scenario{name: "broker", run: measured(func(ctx context.Context, l *bench.Lab) (bench.BrokerResult, error) {
				settings.Logger = l.Logger
				return bench.Broker(ctx, l, driver, settings)
			})}
			return a.measure(cmd.Context(), s, o, keep)
		},
	}
	flags := cmd.Flags()
	to.flags(flags)
	flags.StringVar(&o.Topic, "name", "", "topic, queue, subject or stream to send to; default: a new one")
	flags.IntVar(&o.Messages, "messages", 200_000, "how many messages each side sends in a round")
	flags.IntVar(&o.Keys, "keys", 10_000, "how many ordering keys they have; 1 is the worst case")
	flags.IntVar(&o.Payload, "payload", 256, "bytes of each message's payload")
	flags.IntVar(&o.Rounds, "rounds", 3, "how often each side is measured; the median counts")
	flags.IntVar(&o.Shards, "shards", 8, "shards of the log")
	flags.BoolVar(&o.Once, "once", false, "also measure what it costs that nothing comes twice; for Kafka with --set once=true")
	flags.BoolVar(&keep, "keep", false, "do not remove the schema at the end")
	return cmd
}

// benchTarget holds the flags that name the broker.
type benchTarget struct {
	name, address string
	set           []string
}

func (b *benchTarget) flags(flags *pflag.FlagSet) {
	flags.StringVar(&b.name, "broker", "", "which broker; \"postrider brokers\" lists them")
	flags.StringVar(&b.address, "url", "", "where it is; default: the environment variable POSTRIDER_<BROKER>_URL")
	flags.StringArrayVar(&b.set, "set", nil, "option=value of the destination; may be repeated")
}

func (b *benchTarget) find() (broker.Driver, *broker.Settings, error) {
	name, address := b.name, b.address
	if name == "" {
		return broker.Driver{}, nil, usagef("--broker is not set: which one? For the list: postrider brokers")
	}
	driver, err := broker.Lookup(name)
	if err != nil {
		return broker.Driver{}, nil, usageError{err}
	}
	variable := "POSTRIDER_" + strings.ToUpper(name) + "_URL"
	if address == "" {
		address = os.Getenv(variable)
	}
	if address == "" {
		return broker.Driver{}, nil, usagef("--url is not set, and neither is %s: where is %s?", variable, name)
	}
	values, err := parseSet(b.set)
	if err != nil {
		return broker.Driver{}, nil, err
	}
	return driver, &broker.Settings{URL: address, Values: values}, nil
}
