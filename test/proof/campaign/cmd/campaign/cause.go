package main

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/record"
)

// causeEvery is how often an operator looks.
const causeEvery = 2 * time.Second

// statusReport is what is used of the output of "postrider status --json".
type statusReport struct {
	Feeds []struct {
		Name     string    `json:"name"`
		Problems []trouble `json:"problems"`
	} `json:"feeds"`
}

// trouble is a problem of a feed.
type trouble struct {
	Kind     string    `json:"kind"`
	Name     string    `json:"name"`
	Cause    string    `json:"cause"`
	Since    time.Time `json:"since"`
	Failures int64     `json:"failures"`
}

// lookForCause asks the product, until ctx ends, why a destination accepts nothing, and notes when
// an operator could have read it: when status names the destination with a cause, and doctor too.
func (w *watch) lookForCause(ctx context.Context, began record.Event, ready time.Time) {
	before := map[string]int64{} // failures of problems that are older than the fault
	for {
		if asked, ok := w.status(ctx, began.Refuses); ok {
			for _, t := range asked {
				at := t.Since
				if at.Before(began.At) { // the problem is older: it is the cause if messages fail again
					if known, seen := before[t.Name]; !seen || t.Failures == known {
						before[t.Name] = t.Failures
						continue
					}
					at = time.Now()
				}
				if !w.doctorNames(ctx, began.Refuses) {
					continue
				}
				named := record.Event{Fault: began.Fault, Kind: began.Kind, Target: began.Refuses, Phase: record.Named, Detail: t.Cause}
				named.Seconds = max(0, at.Sub(ready).Seconds())
				w.stage.note(named)
				w.stage.log.Info("the cause is named", "n", began.Fault, "kind", began.Kind, "after", seconds(at.Sub(ready)), "cause", t.Cause)
				return
			}
		}
		if !wait(ctx, causeEvery) {
			return
		}
	}
}

// status returns the problems with a destination that status names. Its exit status says only that
// there are some.
func (w *watch) status(ctx context.Context, destination string) (named []trouble, ok bool) {
	text, _ := w.stage.world.Postrider(ctx, "status", "--json")
	var r statusReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil, false
	}
	for _, f := range r.Feeds {
		for _, t := range f.Problems {
			if f.Name == destination && t.Kind == "destination" && t.Cause != "" {
				named = append(named, t)
			}
		}
	}
	return named, true
}

// doctorNames reports whether doctor says that a destination accepts nothing.
func (w *watch) doctorNames(ctx context.Context, destination string) bool {
	text, _ := w.stage.world.Postrider(ctx, "doctor", "--json")
	var r struct {
		Findings []struct{ Severity, Finding string } `json:"findings"`
	}
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return false
	}
	for _, f := range r.Findings {
		if f.Severity == "problem" && strings.Contains(f.Finding, "the feed "+destination+" has accepted nothing") {
			return true
		}
	}
	return false
}
