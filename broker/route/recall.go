package route

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider/broker"
)

// Recall implements [broker.Recaller]. Names are those of [Router.NameOf]. The destinations are
// asked at the same time.
func (r *Router) Recall(ctx context.Context, names []string, since time.Time, found func(id string)) []error {
	w := r.ways.Load()
	errs := make([]error, len(names))
	places := make(map[string][]int) // by destination
	for i, name := range names {
		if name != "" { // otherwise nothing was sent
			here, _, _ := strings.Cut(name, "/")
			places[here] = append(places[here], i)
		}
	}
	destinations := make([]string, 0, len(places))
	for here := range places {
		destinations = append(destinations, here)
	}
	_ = broker.EachName(destinations, max(len(destinations), 1), found, func(here string, found func(id string)) error {
		theirs := make([]string, len(places[here]))
		for n, i := range places[here] {
			_, theirs[n], _ = strings.Cut(names[i], "/")
		}
		for n, err := range w.recall(ctx, here, theirs, since, found) {
			errs[places[here][n]] = err
		}
		return nil
	})
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	return nil
}

func (w *ways) recall(ctx context.Context, here string, names []string, since time.Time, found func(id string)) []error {
	at := slices.IndexFunc(w.destinations, func(d destination) bool { return d.name == here })
	if at < 0 {
		return slices.Repeat([]error{broker.CannotRecall("route: there is no destination %q any more", here)}, len(names))
	}
	original, ok := w.table.originals(here)
	if !ok {
		err := broker.CannotRecall("route: a rule for %q makes IDs of more than {id}", here)
		return slices.Repeat([]error{err}, len(names))
	}
	return broker.Recall(ctx, w.destinations[at].pub, names, since, func(id string) { original(id, found) })
}

// originals returns a function that finds the IDs which messages may have had before rules for the
// destination changed them. It returns false if a rule makes an ID of more than the message's ID.
func (t *Table) originals(destination string) (func(id string, found func(string)), bool) {
	var made []template
	for i := range t.rules {
		if r := &t.rules[i]; !r.Drop && r.Destination == destination && !r.ownID {
			if len(r.id.fields) != 1 {
				return nil, false
			}
			made = append(made, r.id)
		}
	}
	return func(id string, found func(string)) {
		found(id)
		for _, one := range made {
			rest, begins := strings.CutPrefix(id, one.literals[0])
			if rest, ends := strings.CutSuffix(rest, one.literals[1]); begins && ends {
				found(rest)
			}
		}
	}, true
}
