package config

import "fmt"

const (
	perFeed     = 4 // connections; a relay keeps at most three busy
	perDatabase = 2 // at least, lest one slow statement stops everything
	perProcess  = 10000
)

// budget is the number of connections for so many feeds.
func (f *File) budget(feeds int) int {
	if f.Connections != 0 {
		return f.Connections
	}
	return perFeed * feeds
}

// Pools divides the connections over the databases of the feeds with the names: for each URL, how many. Databases with
// the same URL share theirs, whatever their schemas. Each gets two, and the rest goes where the most feeds share the
// fewest.
func (f *File) Pools(names []string) (map[string]int, error) {
	feeds := make(map[string]int) // by URL
	for _, name := range names {
		if database, err := choose("database", f.Feeds[name].Database, f.Databases); err == nil {
			feeds[f.Databases[database].URL]++
		}
	}
	if f.Connections > perProcess {
		return nil, fmt.Errorf("connections (%d) is more than %d", f.Connections, perProcess)
	}
	left := f.budget(len(names)) - perDatabase*len(feeds)
	if left < 0 {
		return nil, fmt.Errorf("connections (%d) is less than the %d that %d databases need, %d each",
			f.budget(len(names)), perDatabase*len(feeds), len(feeds), perDatabase)
	}
	pools := make(map[string]int, len(feeds))
	urls := keys(feeds)
	for _, url := range urls {
		pools[url] = perDatabase
	}
	for ; left > 0 && len(urls) > 0; left-- {
		poorest := urls[0]
		for _, url := range urls {
			if (pools[url]+1)*feeds[poorest] < (pools[poorest]+1)*feeds[url] {
				poorest = url
			}
		}
		pools[poorest]++
	}
	return pools, nil
}
