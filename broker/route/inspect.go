package route

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/postrider/postrider/broker"
)

// Inspect implements [broker.Inspector]. It asks each destination that supports it about the names
// known from its rules and the given names. A given name in the form that [Router.NameOf] returns
// goes only to the destination that it names. The result includes all answers, even if some
// destination did not answer.
func (r *Router) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	w := r.ways.Load()
	found := make([]broker.Inspection, len(w.destinations))
	errs := make([]error, len(w.destinations))
	var asked sync.WaitGroup
	for i, d := range w.destinations {
		inspector, ok := d.pub.(broker.Inspector)
		if !ok {
			continue
		}
		known := append(w.table.Names(d.name), w.namesAt(d.name, names)...)
		slices.Sort(known)
		known = slices.Compact(known)
		asked.Go(func() {
			var err error
			if found[i], err = inspector.Inspect(ctx, known); err != nil {
				errs[i] = fmt.Errorf("route: destination %q: %w", d.name, err)
			}
		})
	}
	asked.Wait()
	if len(found) == 1 {
		return found[0], errors.Join(errs...)
	}
	return w.merge(found), errors.Join(errs...)
}

// namesAt returns the names that may exist at a destination: those prefixed with it, and those
// without a known prefix.
func (w *ways) namesAt(here string, names []string) (list []string) {
	for _, name := range names {
		at, rest, _ := strings.Cut(name, "/")
		isOne := func(d destination) bool { return d.name == at }
		switch {
		case at == here && rest != "":
			list = append(list, rest)
		case at != here && !slices.ContainsFunc(w.destinations, isOne):
			list = append(list, name)
		}
	}
	return list
}

// merge combines the inspections, prefixing each with the name of its destination.
func (w *ways) merge(found []broker.Inspection) broker.Inspection {
	var all broker.Inspection
	var sentences []string
	for i, one := range found {
		prefix := w.destinations[i].name + ": "
		if one.Confirmed != "" {
			sentences = append(sentences, prefix+one.Confirmed)
		}
		for _, s := range one.Settings {
			all.Settings = append(all.Settings, broker.Setting{Name: prefix + s.Name, Value: s.Value})
		}
		for _, one := range one.Warnings {
			all.Warnings = append(all.Warnings, broker.Warning{Danger: prefix + one.Danger, Remedy: one.Remedy})
		}
	}
	all.Confirmed = strings.Join(sentences, " ")
	return all
}
