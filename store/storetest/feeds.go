package storetest

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/store/feeds"
)

// testUnknownFeedIsRefused opens a feed with a mistyped name.
func testUnknownFeedIsRefused(t *testing.T, h Harness) {
	write(t, h, series("k", 3)...)
	member := feeds.Member{Name: t.Name(), Lease: longLease}
	joinAs(t, h, "default", member).leave() // the first feed is created without Create
	joinAs(t, h, "default", member).leave()
	var none *feeds.NoFeedError
	_, err := h.Store.Open(t.Context(), "defualt", member)
	if !errors.As(err, &none) || !errors.Is(err, feeds.ErrNoFeed) || none.Feed != "defualt" || !slices.Equal(none.Feeds, []string{"default"}) ||
		!strings.Contains(err.Error(), `"defualt"`) || !strings.Contains(err.Error(), `"default"`) {
		t.Fatalf("an unknown feed: %v, want a NoFeedError that names both", err)
	}
	if h.Admin != nil {
		if listed, err := h.Admin.ListFeeds(t.Context()); err != nil || len(listed) != 1 {
			t.Errorf("there are %d feeds, %v; want the one", len(listed), err)
		}
	}
	if h.OneFeed {
		return
	}
	member.Create = true
	joinAs(t, h, "audit", member).leave()
	joinAs(t, h, "audit", member).leave() // a relay that restarts sets Create again
	member.Create = false
	joinAs(t, h, "audit", member).leave()
	_, err = h.Store.Open(t.Context(), "nope", member)
	if !errors.As(err, &none) || !slices.Equal(none.Feeds, []string{"audit", "default"}) {
		t.Errorf("another unknown feed: %v, want a NoFeedError that names two", err)
	}
}

// testFirstFeeds starts several feeds at once, each as the first.
func testFirstFeeds(t *testing.T, h Harness) {
	if h.OneFeed {
		t.Skip("n/a: a table has one feed")
	}
	names := []string{"audit", "default", "mail"}
	errs := make([]error, 4*len(names))
	var run sync.WaitGroup
	for i := range errs {
		run.Go(func() {
			_, errs[i] = h.Store.Open(t.Context(), names[i%len(names)], feeds.Member{
				Name: t.Name(), Lease: longLease, Beside: names, Destination: "to " + names[i%len(names)],
			})
		})
	}
	run.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	_, err := h.Store.Open(t.Context(), "late", feeds.Member{Name: t.Name(), Lease: longLease, Beside: append(names, "late")})
	if !errors.Is(err, feeds.ErrNoFeed) {
		t.Errorf("one that was added later: %v, want ErrNoFeed", err)
	}
	_, err = h.Store.Open(t.Context(), "mail", feeds.Member{Name: t.Name(), Lease: longLease, Destination: "elsewhere"})
	if !errors.Is(err, feeds.ErrDestination) {
		t.Errorf("another destination: %v, want ErrDestination", err)
	}
}

// testNewFeedBegins creates feeds at the oldest message, after the newest, and in between.
func testNewFeedBegins(t *testing.T, h Harness) {
	if h.OneFeed {
		_, err := h.Store.Open(t.Context(), "feed", feeds.Member{Name: t.Name(), Lease: longLease, From: feeds.Origin{Now: true}})
		if !errors.Is(err, postrider.ErrUnsupported) {
			t.Errorf("from now on: %v, want ErrUnsupported", err)
		}
		return
	}
	var all []postrider.Message
	for i := range 8 {
		all = append(all, series(string(rune('a'+i)), 3)...)
	}
	write(t, h, all[:12]...)
	joinAlone(t, h, "first", longLease).leave()
	pause := 50 * time.Millisecond
	time.Sleep(pause) //nolint:forbidigo // the store's clock has to go on
	between := time.Now()
	time.Sleep(pause) //nolint:forbidigo // as above
	open := begin(t, h, series("late", 2)...)
	late := all[12:]
	write(t, h, late...)
	for name, c := range map[string]struct {
		from  feeds.Origin
		wants []postrider.Message
	}{
		"oldest": {feeds.Origin{}, all},
		"time":   {feeds.Origin{Time: between}, late},
		"future": {feeds.Origin{Time: between.Add(time.Hour)}, nil},
		"now":    {feeds.Origin{Now: true}, nil},
	} {
		r := joinAs(t, h, name, feeds.Member{Name: "relay-1", Lease: longLease, Create: true, From: c.from})
		r.takeAll(h)
		expect(t, r.next(len(c.wants), 100), c.wants)
		r.leave()
		if h.Admin == nil {
			continue
		}
		entries, err := h.Admin.Audit(t.Context(), name, 0, 10)
		if err != nil || len(entries) != 1 || entries[0].Action != "feed add" || entries[0].Count != len(c.wants) || entries[0].Who != "relay-1" {
			t.Errorf("%s: the record is %+v, %v; want that it will send %d", name, entries, err, len(c.wants))
		}
	}
	commit(t, open) // messages that were not committed yet are read wherever the feed began
	for _, name := range []string{"time", "future", "now"} {
		r := joinAlone(t, h, name, longLease)
		n := 2
		if name == "time" {
			n += len(late)
		}
		r.next(n, 100)
		r.idle()
	}
}

// testFeedRemembersDestination joins with another destination than the last member.
func testFeedRemembersDestination(t *testing.T, h Harness) {
	open := func(destination string, force bool) error {
		f, err := h.Store.Open(t.Context(), "feed", feeds.Member{Name: "relay-1", Lease: longLease, Destination: destination, Force: force})
		if err == nil {
			err = f.Close(t.Context())
		}
		return err
	}
	remembers := func(want string) {
		t.Helper()
		if h.Admin == nil {
			return
		}
		if listed, err := h.Admin.ListFeeds(t.Context()); err != nil || len(listed) != 1 || listed[0].Destination != want {
			t.Errorf("the feeds are %+v, %v; want one with the destination %q", listed, err, want)
		}
	}
	for _, destination := range []string{"", "nats://a", "nats://a", ""} {
		if err := open(destination, false); err != nil {
			t.Fatalf("Open with the destination %q: %v", destination, err)
		}
	}
	remembers("nats://a")
	var other *feeds.DestinationError
	err := open("stdout:", false)
	if !errors.As(err, &other) || !errors.Is(err, feeds.ErrDestination) || *other != (feeds.DestinationError{Feed: "feed", Has: "nats://a", Wants: "stdout:"}) {
		t.Fatalf("another destination: %v, want a DestinationError with both", err)
	}
	remembers("nats://a")
	if err := open("stdout:", true); err != nil {
		t.Fatalf("another destination by force: %v", err)
	}
	remembers("stdout:")
	if h.Admin == nil {
		return
	}
	entries, err := h.Admin.Audit(t.Context(), "feed", 0, 1)
	if err != nil || len(entries) != 1 || entries[0].Action != "feed destination" || entries[0].Who != "relay-1" ||
		entries[0].Before["destination"] != "nats://a" || entries[0].After["destination"] != "stdout:" {
		t.Errorf("the record is %+v, %v; want both destinations", entries, err)
	}
}
