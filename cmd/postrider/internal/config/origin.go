package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/postrider/postrider/store/feeds"
)

// ParseOrigin reads where a new feed begins: "now", "oldest" or an RFC 3339 time.
func ParseOrigin(text string) (feeds.Origin, error) {
	switch text {
	case "now":
		return feeds.Origin{Now: true}, nil
	case "oldest":
		return feeds.Origin{}, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.IsZero() {
		return feeds.Origin{}, fmt.Errorf("%q is none of now, oldest and a time such as 2026-01-31T12:00:00Z", text)
	}
	return feeds.Origin{Time: at}, nil
}

// Where returns the scheme and the host of a destination's address, which a feed records. It omits
// passwords, paths and options, which may be secret.
func Where(url string) string {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok {
		return scheme
	}
	rest, ok = strings.CutPrefix(rest, "//")
	if !ok {
		return scheme + ":"
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest[strings.LastIndex(rest, "@")+1:]
}
