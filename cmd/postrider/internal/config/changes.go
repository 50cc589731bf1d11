package config

import "reflect"

// Changes compares the configuration with its next version: feeds whose routes differ, by name, and the paths of all else
// that does. A feed's destination is where its routes lead, and so counts as one of them.
func (f *File) Changes(next *File) (routes, others []string) {
	others = append(others, differing("databases.", f.Databases, next.Databases)...)
	others = append(others, differing("destinations.", f.Destinations, next.Destinations)...)
	for _, name := range keys(f.Feeds) {
		before := f.Feeds[name]
		after, ok := next.Feeds[name]
		if !ok {
			continue
		}
		if !reflect.DeepEqual(f.rules(before), next.rules(after)) {
			routes = append(routes, name)
		}
	}
	others = append(others, differing("feeds.", f.settled(), next.settled())...)
	others = append(others, differing("reconcilers.", f.Reconcilers, next.Reconcilers)...)
	if f.Connections != next.Connections {
		others = append(others, "connections")
	}
	if f.Health != next.Health {
		others = append(others, "health")
	}
	if !reflect.DeepEqual(f.Console, next.Console) {
		others = append(others, "console")
	}
	return routes, others
}

// settled returns the feeds without their routes.
func (f *File) settled() map[string]Feed {
	feeds := make(map[string]Feed, len(f.Feeds))
	for name, feed := range f.Feeds {
		feed.Routes, feed.Destination = nil, ""
		feeds[name] = feed
	}
	return feeds
}

// differing returns the keys, behind the prefix, of what is not the same in both.
func differing[T any](prefix string, before, after map[string]T) []string {
	all := make(map[string]bool)
	for name := range before {
		all[name] = true
	}
	for name := range after {
		all[name] = true
	}
	var found []string
	for _, name := range keys(all) {
		a, before := before[name]
		b, after := after[name]
		if before != after || !reflect.DeepEqual(a, b) {
			found = append(found, prefix+name)
		}
	}
	return found
}
