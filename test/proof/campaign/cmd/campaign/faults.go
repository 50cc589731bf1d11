package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/fault"
	"github.com/postrider/postrider/test/proof/campaign/record"
)

// hurt executes the schedule, and returns when all faults are healed. The end of ctx heals them
// early.
func (s *stage) hurt(ctx context.Context, kinds []fault.Kind) {
	possible := kinds[:0:0]
	for _, k := range kinds {
		if err := k.Available(s.world); err != nil {
			s.log.Info("a kind of fault is left out", "kind", k.Name, "why", err)
			continue
		}
		possible = append(possible, k)
	}
	length := time.Duration(s.options.minutes * float64(time.Minute))
	var planned []fault.Planned
	if len(possible) > 0 && s.options.faults > 0 {
		planned = fault.Schedule(fault.Plan{
			Seed: s.options.seed, Length: length, Faults: s.options.faults, Kinds: possible, Quiet: s.options.quiet / 100,
		})
	}
	began := time.Now()
	s.screen.begin(began, length, len(planned))
	s.log.Info("the campaign begins", "minutes", s.options.minutes, "faults", len(planned), "kinds", len(possible))
	end := began.Add(length)
	var all sync.WaitGroup
	var gate gate
	for _, p := range planned {
		if !wait(ctx, time.Until(began.Add(p.At))) {
			break
		}
		all.Go(func() {
			if !gate.enter(ctx, p, end) {
				s.note(record.Event{Phase: record.Note, Fault: p.Number, Kind: p.Kind.Name, Detail: "left out: others took too long"})
				return
			}
			defer gate.leave(p.Number)
			s.hurtOnce(ctx, p)
		})
	}
	wait(ctx, time.Until(end))
	all.Wait()
}

// hurtOnce begins and heals one fault.
func (s *stage) hurtOnce(ctx context.Context, p fault.Planned) {
	healing := context.WithoutCancel(ctx)
	event := record.Event{At: time.Now(), Fault: p.Number, Kind: p.Kind.Name}
	running, err := p.Kind.Begin(healing, s.world, p.Random())
	if err != nil {
		event.Phase, event.Detail = record.Note, "did not begin: "+err.Error()
		s.note(event)
		s.log.Warn("a fault did not begin", "fault", p.Number, "kind", p.Kind.Name, "err", err)
		return
	}
	event.Target, event.Detail = running.Target, running.Detail
	began := event
	began.Tenant = running.Tenant
	began.Phase, began.Touches, began.Zombie, began.Clean = record.Begin, running.Touches, p.Kind.Zombie, p.Kind.Clean
	began.Seconds, began.Again, began.Refuses = time.Since(event.At).Seconds(), running.Again, running.Refuses
	s.note(began)
	watched, look := context.WithCancel(healing)
	var looking sync.WaitGroup
	if running.Refuses != "" {
		looking.Go(func() { s.watch.lookForCause(watched, began, time.Now()) })
	}
	s.screen.fault(p.Number, p.Kind.Name)
	s.log.Info("fault", "n", p.Number, "kind", p.Kind.Name, "target", running.Target, "detail", running.Detail, "for", seconds(p.For))
	wait(ctx, p.For)
	err = running.Heal(healing)
	healed := event
	healed.At, healed.Phase = time.Now(), record.Heal
	look()
	looking.Wait()
	healed.Seconds = healed.At.Sub(event.At).Seconds()
	if err != nil {
		healed.Detail = "the heal failed: " + err.Error()
		s.log.Error("a fault could not be healed", "n", p.Number, "kind", p.Kind.Name, "err", err)
	}
	s.note(healed)
	s.screen.healed(p.Number)
	s.watch.recovery(healed)
}

// wait returns false if ctx ends first.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(max(d, 0))
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

type listedKind struct {
	Name     string   `json:"name"`
	Doc      string   `json:"doc"`
	Shortest string   `json:"shortest"`
	Longest  string   `json:"longest"`
	Weight   int      `json:"weight"`
	Needs    []string `json:"needs,omitempty"`
	Missing  string   `json:"missing,omitempty"` // why this machine does not support it
}

func faultsCommand(_ context.Context, args []string) error {
	flags := newFlags("faults [--json]")
	asJSON := flags.Bool("json", false, "print JSON")
	if err := flags.Parse(args); err != nil {
		return err
	}
	var list []listedKind
	for _, k := range fault.Kinds() {
		l := listedKind{Name: k.Name, Doc: k.Doc, Shortest: k.Shortest.String(), Longest: k.Longest.String(), Weight: k.Weight}
		for _, n := range k.Needs {
			l.Needs = append(l.Needs, string(n))
		}
		if err := k.Possible(); err != nil {
			l.Missing = err.Error()
		}
		list = append(list, l)
	}
	if *asJSON {
		return printJSON(list)
	}
	for _, l := range list {
		fmt.Printf("%-24s %s", l.Name, l.Doc)
		if len(l.Needs) > 0 {
			fmt.Printf(" Needs: %v.", l.Needs)
		}
		if l.Missing != "" {
			fmt.Printf(" Not here: %s.", l.Missing)
		}
		fmt.Println()
	}
	return nil
}
