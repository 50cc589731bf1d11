package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/postrider/postrider"
)

const (
	inspectTimeout = 10 * time.Second
	inspectPause   = time.Second // pause before a destination that did not answer is asked again; it doubles
	inspectLongest = time.Minute
)

// inspect asks a destination what its confirmations are worth, until it answers or ctx ends, and logs what it says.
func inspect(ctx context.Context, log *slog.Logger, d openDestination) {
	inspector, ok := d.pub.(postrider.Inspector)
	if !ok {
		return
	}
	log = log.With("destination", d.name)
	for pause := inspectPause; ; pause = min(2*pause, inspectLongest) {
		call, cancel := context.WithTimeout(ctx, inspectTimeout)
		found, err := inspector.Inspect(call, d.names)
		cancel()
		if err == nil {
			d.answers.note(nil)
			report(log, found)
			return
		}
		if !d.answers.ever() { // messages that it takes say more
			d.answers.note(err)
		}
		log.Debug("relay: the destination does not say what confirmed means; asking again", "in", pause, "err", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

func report(log *slog.Logger, found postrider.Inspection) {
	var settings []string
	for _, s := range found.Settings { // several names may lead to the same thing
		if text := s.Name + "=" + s.Value; !slices.Contains(settings, text) {
			settings = append(settings, text)
		}
	}
	log.Info("relay: confirmed means", "meaning", found.Confirmed, "settings", strings.Join(settings, ", "))
	for i, w := range found.Warnings {
		if slices.Contains(found.Warnings[:i], w) {
			continue
		}
		log.Warn("relay: the destination needs attention", "danger", w.Danger, "remedy", w.Remedy)
	}
}
