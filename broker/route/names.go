package route

import (
	"slices"
	"strings"
)

// maxNames limits how many names one rule yields.
const maxNames = 100

// Destinations returns the names of all destinations that rules send to, sorted.
func (t *Table) Destinations() []string {
	var names []string
	for i := range t.rules {
		if !t.rules[i].Drop {
			names = append(names, t.rules[i].Destination)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Names returns, sorted, the names at a destination that are known in advance: names without
// placeholders, and names with {type}, {topic} or {tenant} whose rule lists the values without "*".
func (t *Table) Names(destination string) []string {
	var names []string
	for i := range t.rules {
		if r := &t.rules[i]; !r.Drop && !r.ownName && r.Destination == destination {
			names = append(names, r.names()...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (r *rule) names() []string {
	names := []string{r.Name}
	for _, list := range []struct {
		placeholder string
		values      []string
	}{{"{type}", r.Match.Types}, {"{topic}", r.Match.Topics}, {"{tenant}", r.Match.Tenants}} {
		if !strings.Contains(r.Name, list.placeholder) {
			continue
		}
		var filled []string
		for _, name := range names {
			for _, value := range list.values {
				if value != "" && !strings.Contains(value, "*") {
					filled = append(filled, strings.ReplaceAll(name, list.placeholder, value))
				}
			}
		}
		if names = filled; len(names) > maxNames {
			return nil
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return strings.Contains(name, "{") })
}
