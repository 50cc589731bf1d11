package config

import "fmt"

const (
	perFeed     = 4 // connections; a relay keeps at most three busy
	perDatabase = 2 // the minimum, so that one slow statement does not block everything
	perProcess  = 10000
)

// budget returns the number of connections for so many feeds.
func (f *File) budget(feeds int) int {
	if f.Connections != 0 {
		return f.Connections
	}
	return perFeed * feeds
}

// Pools divides the connections among the databases of the named feeds. It returns the number of
// connections for each URL. Databases with the same URL share a pool, whatever their schemas. Each
// pool gets two connections; each remaining connection goes to the pool with the fewest connections
// per feed.
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
