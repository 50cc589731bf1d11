package config

import "reflect"

// Changes compares the configuration with its next version. It returns the names of feeds whose
// routes differ, and the paths of everything else that differs. The destination of a feed is the
// default of its routes, so a changed destination counts as changed routes.
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

// settled returns the feeds without what a running relay can reload: routes and destination.
func (f *File) settled() map[string]Feed {
	feeds := make(map[string]Feed, len(f.Feeds))
	for name, feed := range f.Feeds {
		feed.Routes, feed.Destination = nil, ""
		feeds[name] = feed
	}
	return feeds
}

// differing returns the keys, with the prefix, whose values differ between before and after.
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
