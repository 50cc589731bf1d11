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
// an operator could first read it in status, once doctor has said it too.
func (w *watch) lookForCause(ctx context.Context, began record.Event, ready time.Time) {
	named := record.Event{Fault: began.Fault, Kind: began.Kind, Target: began.Refuses, Phase: record.Named}
	before := map[string]int64{} // failures of problems that are older than the fault
	for {
		if named.Detail == "" {
			if cause, at := w.cause(ctx, began, before); cause != "" {
				named.Detail, named.Seconds = cause, max(0, at.Sub(ready).Seconds())
			}
		}
		if named.Detail != "" && w.doctorNames(ctx, began.Refuses) {
			w.stage.note(named)
			w.stage.log.Info("the cause is named", "n", began.Fault, "kind", began.Kind, "after", named.Seconds, "cause", named.Detail)
			return
		}
		if !wait(ctx, causeEvery) {
			return
		}
	}
}

// cause returns what status says about a fault, and since when it does.
func (w *watch) cause(ctx context.Context, began record.Event, before map[string]int64) (cause string, at time.Time) {
	for _, t := range w.status(ctx, began.Refuses) {
		known, seen := before[t.Name]
		switch {
		case !t.Since.Before(began.At):
			return t.Cause, t.Since
		case seen && t.Failures > known: // an older problem goes on
			return t.Cause, time.Now()
		}
		before[t.Name] = t.Failures
	}
	return "", at
}

// status returns the problems with a destination that status names. Its exit status says only that
// there are some.
func (w *watch) status(ctx context.Context, destination string) (named []trouble) {
	text, _ := w.stage.world.Postrider(ctx, "status", "--json")
	var r statusReport
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return nil
	}
	for _, f := range r.Feeds {
		for _, t := range f.Problems {
			if f.Name == destination && t.Kind == "destination" && t.Cause != "" {
				named = append(named, t)
			}
		}
	}
	return named
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
