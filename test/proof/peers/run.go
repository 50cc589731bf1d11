package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider/test/proof/peers/broker"
	"github.com/postrider/postrider/test/proof/peers/peer"
	"github.com/postrider/postrider/test/proof/peers/result"
	"github.com/postrider/postrider/test/proof/peers/trial"
)

// prepare configures the server as Debezium needs it, for all peers alike.
func prepare(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("prepare", flag.ContinueOnError)
	server := flags.String("server", "", "the database server, as URL")
	if err := flags.Parse(args); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, *server)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, sql := range []string{"ALTER SYSTEM SET wal_level = logical", "ALTER SYSTEM SET max_replication_slots = 20"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// names is a comma-separated flag.
type names []string

func (n *names) String() string { return strings.Join(*n, ",") }

func (n *names) Set(text string) error { *n = strings.Split(text, ","); return nil }

// lab creates a lab from flags.
func lab(args []string) (l *trial.Lab, out string, err error) {
	l = &trial.Lab{Addresses: map[string]string{}}
	flags := flag.NewFlagSet("run", flag.ContinueOnError)
	flags.StringVar(&l.Server, "server", "", "the database server, as URL; a superuser's")
	for _, kind := range broker.Kinds {
		flags.Func(kind, "address of "+kind, func(text string) error { l.Addresses[kind] = text; return nil })
	}
	flags.StringVar(&out, "out", "results.jsonl", "file that lines are appended to")
	flags.StringVar(&l.Programs.Postrider, "postrider", "bin/postrider", "the command")
	flags.StringVar(&l.Programs.Debezium, "debezium", "", "folder of Debezium Server; none: it is left out")

	l.Options.Brokers, l.Works = broker.Kinds, trial.Trials
	for _, p := range peer.All() {
		l.Options.Peers = append(l.Options.Peers, p.Name())
	}
	flags.Var((*names)(&l.Options.Peers), "peers", "names of peers")
	flags.Var((*names)(&l.Options.Brokers), "brokers", "kinds of brokers")
	flags.Var((*names)(&l.Works), "works", "kinds of trials")
	flags.StringVar(&l.Main, "main", "kafka", "broker of the trials held and order")
	flags.IntVar(&l.Repeat, "repeat", 3, "repetitions")
	flags.DurationVar(&l.Phase, "phase", 4*time.Second, "how long each figure is measured")
	flags.DurationVar(&l.Warm, "warm", 1500*time.Millisecond, "how long producers and relays warm up")
	flags.DurationVar(&l.Hold, "hold", time.Minute, "age that the old transaction reaches")
	flags.DurationVar(&l.Cap, "cap", 6*time.Second, "longest time for a backlog")
	flags.IntVar(&l.Rate, "rate", 1000, "messages a second of the trials with a steady rate")
	flags.IntVar(&l.Writers, "writers", 16, "producers")
	flags.IntVar(&l.Backlog, "backlog", 100_000, "messages of a backlog, at least")
	flags.BoolVar(&l.Stock, "stock", false, "leave all settings of the peers as they are by default")
	if err := flags.Parse(args); err != nil {
		return nil, "", err
	}
	if l.Programs.Self, err = os.Executable(); err != nil {
		return nil, "", err
	}
	if l.Programs.Debezium == "" {
		l.Options.Peers = without(l.Options.Peers, "debezium")
	}
	return l, out, nil
}

func without(list []string, name string) (rest []string) {
	for _, n := range list {
		if n != name {
			rest = append(rest, n)
		}
	}
	return rest
}

func run(ctx context.Context, args []string) error {
	l, out, err := lab(args)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if l.Programs.Scratch, err = os.MkdirTemp("", "peers-"); err != nil {
		return err
	}
	defer os.RemoveAll(l.Programs.Scratch)
	l.Record = func(line result.Line) error { return result.Write(file, line) }
	l.Say = func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

	if err := l.Open(ctx); err != nil {
		return err
	}
	defer l.Close()
	if err := l.Introduce(ctx); err != nil {
		return err
	}
	return l.Run(ctx)
}
