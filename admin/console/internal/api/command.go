package api

import (
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/inbox"
	"github.com/postrider/postrider/internal/phrase"
	"github.com/postrider/postrider/store/feeds"
)

// command returns a command line that does the same on the same database, with its words quoted for
// a shell. Users paste it, so it never contains --yes, and the command asks for confirmation.
func (d *database) command(command string, words ...string) string {
	line := "postrider " + command
	for _, w := range words {
		line += " " + phrase.ShellWord(w)
	}
	switch {
	case d == nil:
	case d.oneOfMany:
		line += " --database " + phrase.ShellWord(d.Name)
	case d.Schema != "" && d.Schema != "postrider":
		line += " --schema " + phrase.ShellWord(d.Schema)
	}
	return line
}

// commandOn returns a command on a name. A name that looks like a flag comes last.
func (d *database) commandOn(command, name string, flags ...string) string {
	if strings.HasPrefix(name, "-") {
		return d.command(command, flags...) + " -- " + phrase.ShellWord(name)
	}
	return d.command(command, append([]string{name}, flags...)...)
}

// whose returns the flag that selects a feed or a consumer.
func whose(feed string) []string {
	switch name := inbox.ConsumerOf(feed); {
	case name != "":
		return []string{"--consumer", name}
	case feed != "":
		return []string{"--feed", feed}
	}
	return nil
}

// chosenBy returns the flags for a filter, except for its ID.
func chosenBy(f *admin.Filter) []string {
	flags := whose(f.Feed)
	add := func(flag, value string) {
		if value != "" {
			flags = append(flags, flag, value)
		}
	}
	add("--status", joined(f.Statuses))
	add("--type", f.Type)
	add("--topic", f.Topic)
	add("--key", f.Key)
	add("--tenant", f.Tenant)
	add("--since", moment(f.Since))
	add("--until", moment(f.Until))
	add("--error", f.Error)
	return flags
}

func joined(statuses []feeds.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// reason returns the flag for the audit log.
func reason(why string) []string {
	if why == "" {
		return nil
	}
	return []string{"--reason", why}
}

func atRate(rate int) []string {
	if rate <= 0 {
		return nil
	}
	return []string{"--rate", strconv.Itoa(rate)}
}
