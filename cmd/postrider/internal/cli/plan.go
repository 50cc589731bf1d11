package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/postrider/postrider/cmd/postrider/internal/plan"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// planDefaults are the defaults of the flags.
var planDefaults = plan.Inputs{
	Databases: 1, Servers: 1, MessageSize: 1 << 10, Destinations: 1, Retention: 7 * 24 * time.Hour, Load: 0.7, Zones: 1, RelayCores: 1,
}

func (a *app) planCommand() *cobra.Command {
	in := planDefaults
	var file string
	cmd := &cobra.Command{
		Use:   "plan",
		Short: "Estimate the capacity that a message rate needs",
		Long: "Computes relays, shards, connections, WAL, disk, processor time and memory for a message rate, which limit is reached first\n" +
			"and what to do then, and what a billion messages cost. It uses constants that \"postrider bench scale\" has measured:\n" +
			"those of the machine that the documentation names, or your own with --constants. Each figure is marked as measured, computed\n" +
			"from measurements, or assumed. It connects to nothing.",
		Example: "  postrider plan --rate 5000 --databases 20 --message-size 1KiB --destinations 2 --retention 7d\n" +
			"  postrider plan --rate 50000 --server-cores 32 --zones 3 --json",
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.plan(in, file) },
	}
	flags := cmd.Flags()
	flags.Float64Var(&in.Rate, "rate", 0, "messages a second, in all databases together")
	flags.IntVar(&in.Databases, "databases", in.Databases, "databases that they are spread over")
	flags.IntVar(&in.Servers, "servers", in.Servers, "database servers that these are on")
	flags.Var((*sizeFlag)(&in.MessageSize), "message-size", "bytes of a message's payload, such as 300, 1KiB or 2MB")
	flags.IntVar(&in.Destinations, "destinations", in.Destinations, "destinations that get every message, each a feed of its own")
	flags.Var((*daysFlag)(&in.Retention), "retention", "how long delivered messages are kept at least, such as 7d or 12h")
	flags.StringVar(&in.Broker, "broker", "", "broker whose client relays use; default: the most expensive one that was measured")
	flags.Var((*percentFlag)(&in.Load), "load", "how much of a machine may be used")
	flags.IntVar(&in.Relays, "relays", 0, "relay processes; default: as many as needed")
	flags.IntVar(&in.Zones, "zones", in.Zones, "zones that relays are spread over; one of them, or with one zone one relay, may be lost")
	flags.IntVar(&in.Shards, "shards", 0, "shards of each log; default: as many as needed")
	flags.IntVar(&in.ServerCores, "server-cores", 0, "cores of a database server; default: as the one that was measured")
	flags.Float64Var(&in.RelayCores, "relay-cores", in.RelayCores, "cores that one relay process may use")
	flags.IntVar(&in.MaxConnections, "max-connections", 0, "connections that a database server has for relays; default: 100")
	flags.Var((*sizeFlag)(&in.WALLimit), "wal-limit", "bytes of WAL a second that a server can write and ship; default: the highest that was measured")
	flags.Var((*sizeFlag)(&in.DiskLimit), "disk-limit", "bytes of disk of a server; default: no limit")
	flags.IntVar(&in.Partitions, "partitions", 0, "partitions, or queues, at the broker; default: no limit")
	flags.Float64Var(&in.PartitionLimit, "partition-limit", 0, "messages a second that one partition accepts")
	flags.Float64Var(&in.CPUHourPrice, "cpu-hour-price", 0, "price of one core for an hour; default: unknown")
	flags.Float64Var(&in.WALPrice, "wal-gb-price", 0, "price of a GB of WAL, shipped or archived; default: unknown")
	flags.Float64Var(&in.DiskPrice, "disk-gb-price", 0, "price of a GB of disk for a month; default: unknown")
	flags.StringVar(&file, "constants", "", "file with your own constants, written by \"postrider bench scale --json\"")
	return cmd
}

func (a *app) plan(in plan.Inputs, file string) error {
	if err := in.Validate(); err != nil {
		return usageError{err}
	}
	set, err := scale.Measured()
	if file != "" {
		set, err = scale.Load(file)
	}
	if err != nil {
		return usagef("--constants: %w", err)
	}
	model, err := plan.NewModel(set, in.Broker)
	if err != nil {
		return usageError{err}
	}
	p := model.Compute(in)
	if a.asJSON {
		return a.json(struct {
			plan.Plan
			Retention string     `json:"retention"`
			Period    string     `json:"period"`
			From      measuredOn `json:"constants"`
		}{p, in.Retention.String(), p.Period.String(), measuredOn{set.Taken, set.Command, set.Build, set.Machine, set.Server}})
	}
	if err := a.table(p.Table()); err != nil {
		return err
	}
	for _, line := range p.Summary() {
		a.notef("%s", line)
	}
	a.notef("measured on %s, PostgreSQL %s, by: %s", machineWords(set.Machine), set.Server.Version, set.Command)
	a.notef("assumed: %s; messages spread evenly over databases and shards, payloads that do not compress, all messages to all destinations", percentFlag(in.Load).use())
	return nil
}

// measuredOn describes where the constants of a plan come from.
type measuredOn struct {
	Taken   time.Time     `json:"taken"`
	Command string        `json:"command"`
	Build   string        `json:"build"`
	Machine scale.Machine `json:"machine"`
	Server  scale.Server  `json:"server"`
}

func machineWords(m scale.Machine) string {
	return fmt.Sprintf("%d cores (%s), %.0f GB of memory, %s", m.Cores, m.Processor, float64(m.Memory)/1e9, m.System)
}
