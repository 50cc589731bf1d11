package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/calls"
	"github.com/postrider/postrider/test/proof/campaign/work"
	"github.com/postrider/postrider/test/proof/campaign/work/consumer"
	"github.com/postrider/postrider/test/proof/campaign/work/producer"
)

// process is the common configuration of the workload's processes.
type process struct {
	plan    work.Plan
	name    string
	metrics string
	log     *slog.Logger
}

// begin parses the flags of a process, and serves its metrics.
func begin(name string, args []string, more func(*flag.FlagSet)) (p process, err error) {
	flags := newFlags(name + " --plan FILE")
	path := flags.String("plan", "", "the plan, a `file`")
	flags.StringVar(&p.name, "name", name, "what this process is called")
	flags.StringVar(&p.metrics, "metrics", "", "`address` to serve figures at")
	if more != nil {
		more(flags)
	}
	if err := flags.Parse(args); err != nil {
		return p, err
	}
	if p.plan, err = work.Load(*path); err != nil {
		return p, err
	}
	p.log = slog.New(slog.NewTextHandler(os.Stderr, nil)).With("process", p.name)
	return p, nil
}

// measure serves the counts for samples, the process's own metrics, and POST /control if there is
// something to control.
func (p process) measure(counts func() map[string]int64, control http.Handler) error {
	if p.metrics == "" {
		return nil
	}
	listener, err := net.Listen("tcp", p.metrics)
	if err != nil {
		return err
	}
	go func() {
		mux := http.NewServeMux()
		if control != nil {
			mux.Handle("POST /control", control)
		}
		mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, "go_goroutines %d\n", runtime.NumGoroutine())
			if counts != nil {
				for name, n := range counts() {
					fmt.Fprintf(w, "campaign_%s %d\n", name, n)
				}
			}
		})
		p.log.Error("figures are no longer served", "err", http.Serve(listener, mux))
	}()
	return nil
}

func produceCommand(ctx context.Context, args []string) error {
	p, err := begin("produce", args, nil)
	if err != nil {
		return err
	}
	producer, err := producer.New(context.WithoutCancel(ctx), p.plan, p.log)
	if err != nil {
		return err
	}
	if err := p.measure(producer.Counts, nil); err != nil {
		return err
	}
	producer.Run(ctx)
	p.log.Info("stopped", "counts", producer.Counts())
	return nil
}

func consumeCommand(ctx context.Context, args []string) error {
	number := 0
	p, err := begin("consume", args, func(flags *flag.FlagSet) {
		flags.IntVar(&number, "number", 1, "which one of the consumer processes this is, from 1")
	})
	if err != nil {
		return err
	}
	m := &consumer.Manner{}
	if err := p.measure(nil, m); err != nil {
		return err
	}
	return consumer.Run(ctx, p.plan, p.name, consumer.Share(number, p.plan.Destinations), m, p.log)
}

func receiveCommand(ctx context.Context, args []string) error {
	p, err := begin("receive", args, nil)
	if err != nil {
		return err
	}
	m := &consumer.Manner{}
	if err := p.measure(nil, m); err != nil {
		return err
	}
	return consumer.Receive(ctx, p.plan, m, p.log)
}

func callCommand(ctx context.Context, args []string) error {
	var s calls.Settings
	var servers string
	p, err := begin("call", args, func(flags *flag.FlagSet) {
		flags.StringVar(&s.Address, "address", "", "where to serve")
		flags.StringVar(&servers, "servers", "", "all addresses, with commas between")
		flags.StringVar(&s.Dir, "dir", "", "where to note what was answered")
		flags.Float64Var(&s.Rate, "rate", 2, "calls of each kind in a second")
	})
	if err != nil {
		return err
	}
	s.Name, s.DSN, s.Servers = p.name, p.plan.Producers, strings.Split(servers, ",")
	if err := p.measure(nil, nil); err != nil {
		return err
	}
	return calls.Run(ctx, s)
}
