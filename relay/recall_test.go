package relay_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	brokermemory "github.com/postrider/postrider/broker/memory"
	"github.com/postrider/postrider/relay"
	"github.com/postrider/postrider/store/feeds"
	"github.com/postrider/postrider/store/memory"
)

// destination is a broker that loses answers, and that does not always say what it has.
type destination struct {
	*brokermemory.Broker

	mu     sync.Mutex
	asked  []string                     // names of all questions
	refuse func(name string) error      // instead of an answer
	lose   func(postrider.Message) bool // the answer to a message
}

func (d *destination) Recall(ctx context.Context, names []string, since time.Time, found func(string)) []error {
	d.mu.Lock()
	d.asked = append(d.asked, names...)
	refuse := d.refuse
	d.mu.Unlock()
	errs := make([]error, len(names))
	for i, name := range names {
		if refuse != nil {
			errs[i] = refuse(name)
		}
		if errs[i] == nil {
			errs[i] = errors.Join(d.Broker.Recall(ctx, []string{name}, since, found)...)
		}
	}
	return errs
}

func (d *destination) Publish(ctx context.Context, msgs []postrider.Message) []error {
	errs := d.Broker.Publish(ctx, msgs)
	if errs == nil {
		errs = make([]error, len(msgs))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, m := range msgs {
		if errs[i] == nil && d.lose != nil && d.lose(m) {
			errs[i] = errors.New("the answer was lost")
		}
	}
	return errs
}

func (d *destination) questions() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.asked...)
}

// scene is a store with messages of some names, and a destination.
type scene struct {
	t     *testing.T
	store *memory.DB
	from  feeds.Store // what relays read; nil means store
	to    *destination
	count int
	logs  strings.Builder
}

const sceneLease = 2 * time.Second

func newScene(t *testing.T, count, names int) *scene {
	s := &scene{t: t, store: memory.Open(memory.Config{Shards: 2}), to: &destination{Broker: brokermemory.New()}}
	s.write(count, names)
	return s
}

func (s *scene) write(count, names int) {
	s.t.Helper()
	tx := s.store.Begin()
	for range count {
		m := postrider.Event("happened", postrider.Aggregate{Type: "a", ID: fmt.Sprint(s.count % (3 * names))}, nil)
		m.Topic = fmt.Sprint("name", s.count%names)
		if err := s.store.Enqueue(s.t.Context(), tx, m); err != nil {
			s.t.Fatal(err)
		}
		s.count++
	}
	if err := tx.Commit(); err != nil {
		s.t.Fatal(err)
	}
}

// dying opens the feed as a relay that is going to die, and takes its shards.
func (s *scene) dying() (feeds.Feed, feeds.Share) {
	s.t.Helper()
	f, err := s.store.Open(s.t.Context(), "default", feeds.Member{Name: "dead", Lease: sceneLease})
	if err != nil {
		s.t.Fatal(err)
	}
	share, err := f.Balance(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return f, share
}

// as returns a context in which the owner of a shard publishes.
func (s *scene) as(share feeds.Share, shard int) context.Context {
	return broker.WithSender(s.t.Context(), broker.Sender{
		Name: fmt.Sprintf("%s/default/%d", share.ID, shard), Term: share.Terms[shard] << 20,
	})
}

// crash lets a relay send some messages of each shard and die. The others are in flight still: what
// it returns sends them.
func (s *scene) crash(each int) (late func() []error) {
	s.t.Helper()
	f, share := s.dying()
	var rest []func() []error
	for _, shard := range share.Shards {
		if _, err := f.Settle(s.t.Context(), []feeds.Mark{{Shard: shard, Sent: time.Now()}}); err != nil {
			s.t.Fatal(err)
		}
		batches, err := f.Read(s.t.Context(), []feeds.Demand{{Shard: shard, Limit: s.count}})
		if err != nil {
			s.t.Fatal(err)
		}
		ctx := s.as(share, shard)
		for _, b := range batches {
			if err := errors.Join(s.to.Publish(ctx, b.Messages[:each])...); err != nil {
				s.t.Fatal(err)
			}
			rest = append(rest, func() []error { return s.to.Publish(ctx, b.Messages[each:]) })
		}
	}
	return func() (errs []error) {
		for _, send := range rest {
			errs = append(errs, send()...)
		}
		return errs
	}
}

// run runs a relay until it has settled everything, at most for the given time.
func (s *scene) run(limit time.Duration) {
	s.t.Helper()
	log := slog.New(slog.NewTextHandler(&s.logs, nil))
	r, err := relay.New(cmp.Or[feeds.Store](s.from, s.store), s.to, relay.Config{Lease: sceneLease, BatchSize: 10, ReadAhead: 20, Logger: log})
	if err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for end := time.Now().Add(limit); time.Now().Before(end) && !s.settled(); {
		time.Sleep(50 * time.Millisecond)
	}
	cancel()
	if err := <-ended; err != nil {
		s.t.Error(err)
	}
}

func (s *scene) settled() bool {
	list, err := s.store.ListFeeds(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return len(list) == 1 && list[0].Pending+list[0].Deferred == 0
}

// expect fails unless each message has arrived, and the given number of them a second time.
func (s *scene) expect(repeated int) {
	s.t.Helper()
	times := make(map[postrider.ID]int)
	for _, m := range s.to.Messages() {
		times[m.ID]++
	}
	again := 0
	for _, n := range times {
		again += n - 1
	}
	if len(times) != s.count || again != repeated {
		s.t.Errorf("%d of %d messages have arrived, %d of them again, want %d\n%s", len(times), s.count, again, repeated, s.logs.String())
	}
}

// TestRecallAfterCrash: what a relay has sent before it died is not sent again, over any number of
// names and reads; what it still has in flight is fenced.
func TestRecallAfterCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 200, 5)
		late := s.crash(50)
		s.run(time.Minute)
		s.expect(0)
		for _, err := range late() {
			if !errors.Is(err, broker.ErrFenced) && !errors.Is(err, postrider.ErrNotTried) {
				t.Fatalf("what was in flight: %v, want ErrFenced", err)
			}
		}
		s.expect(0)
		asked := len(s.to.questions())
		s.write(50, 10)
		s.run(time.Minute)
		if n := len(s.to.questions()); n != asked || asked > 10 {
			t.Errorf("%d questions, and %d more after a clean stop", asked, n-asked)
		}
		s.expect(0)
	})
}

// TestRecallEndsWithTheLog: once the last message is confirmed that the former owner can have sent,
// nothing is asked about further names, and nothing is left to the next owner.
func TestRecallEndsWithTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 100, 2)
		s.crash(20)
		s.run(time.Minute)
		s.expect(0)
		asked := len(s.to.questions())
		s.crash(0)
		s.write(100, 50)
		s.run(time.Minute)
		s.expect(0)
		if n := len(s.to.questions()); n <= asked {
			t.Error("nothing was asked after the second crash")
		}
	})
}

// TestRecallImpossible: a destination that cannot answer gets everything again, and operators are
// told so if there is something that they can do.
func TestRecallImpossible(t *testing.T) {
	for what, err := range map[string]error{"": broker.ErrCannotRecall, "the window is too short": broker.CannotRecall("the window is too short")} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, 100, 3)
			s.to.refuse = func(string) error { return err }
			s.crash(20)
			s.run(time.Minute)
			s.expect(40)
			if logs := s.logs.String(); strings.Contains(logs, "come twice") != (what != "") || !strings.Contains(logs, what) {
				t.Errorf("want %q in the log\n%s", what, logs)
			}
		})
	}
}

// TestRecallWaits: while the destination does not answer, nothing is sent; if that concerns one name,
// the others go on.
func TestRecallWaits(t *testing.T) {
	for what, mark := range map[string]func(error) error{
		"all": postrider.Unavailable, "one name": postrider.NameUnavailable, "unknown": func(err error) error { return err },
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, 100, 4)
			s.crash(20)
			before := len(s.to.Messages())
			s.to.refuse = func(name string) error {
				if what == "all" || name == "name1" {
					return mark(errors.New("no answer"))
				}
				return nil
			}
			time.AfterFunc(20*time.Second, func() {
				if n := len(s.to.Messages()); (n > before) != (what != "all") || n == s.count {
					t.Errorf("%s: %d messages have arrived, before %d", what, n, before)
				}
				s.to.mu.Lock()
				defer s.to.mu.Unlock()
				s.to.refuse = nil
			})
			s.run(time.Minute)
			s.expect(0)
		})
	}
}

// TestRecallGivesUp: a name that is never answered, although the destination is not away, must not
// wait for ever.
func TestRecallGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 100, 4)
		s.crash(20)
		s.to.refuse = func(name string) error {
			if name == "name1" {
				return context.DeadlineExceeded
			}
			return nil
		}
		s.run(10 * time.Minute)
		s.expect(10)
		if !strings.Contains(s.logs.String(), "come twice") {
			t.Errorf("operators were not told\n%s", s.logs.String())
		}
	})
}

// TestRecallAfterLostAnswers: messages whose answers were lost are not sent again.
func TestRecallAfterLostAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 300, 3)
		n := 0
		s.to.lose = func(postrider.Message) bool {
			n++
			return n%5 == 0
		}
		s.run(time.Minute)
		s.expect(0)
		if len(s.to.questions()) == 0 {
			t.Error("nothing was asked")
		}
	})
}

// TestRecallOutbids: terms that are lower than those of an earlier life of the database, from before
// it was restored, rise until they are higher.
func TestRecallOutbids(t *testing.T) {
	for _, what := range []string{"after a crash", "after a clean stop"} {
		synctest.Test(t, func(t *testing.T) {
			s := newScene(t, 100, 1)
			if what == "after a crash" {
				s.crash(20)
			}
			f, err := s.store.Open(t.Context(), "default", feeds.Member{Name: "id", Lease: sceneLease})
			if err != nil {
				t.Fatal(err)
			}
			share, err := f.Balance(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = f.Close(t.Context())
			for shard := range 2 {
				ctx := broker.WithSender(t.Context(), broker.Sender{Name: fmt.Sprintf("%s/default/%d", share.ID, shard), Term: 1 << 40})
				if errs := s.to.Broker.Recall(ctx, []string{"name0"}, time.Now(), func(string) {}); errs != nil {
					t.Fatal(errs)
				}
			}
			s.run(time.Minute)
			s.expect(0)
		})
	}
}

// TestRecallOfDeferred: what a relay defers although it may have arrived is asked about when it is due,
// also by the next relay.
func TestRecallOfDeferred(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 60, 1)
		s.to.lose = func(m postrider.Message) bool { return m.AggregateID == "1" }
		s.to.refuse = func(string) error { return postrider.NameUnavailable(errOdd) }
		s.run(5 * time.Second)
		if s.settled() {
			t.Fatal("nothing was left to the next relay")
		}
		s.to.lose, s.to.refuse = nil, nil
		s.run(time.Minute)
		s.expect(0)
	})
}

// dieRetrying lets a relay defer all messages, send them, and die.
func (s *scene) dieRetrying() {
	s.t.Helper()
	f, share := s.dying()
	for _, shard := range share.Shards {
		batches, err := f.Read(s.t.Context(), []feeds.Demand{{Shard: shard, Limit: s.count}})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, b := range batches {
			var all []feeds.Deferral
			for i := range b.Messages {
				all = append(all, feeds.Deferral{Batch: &b, Index: i, Status: feeds.StatusRetry})
			}
			if err := f.Defer(s.t.Context(), all); err != nil {
				s.t.Fatal(err)
			}
			if _, err := f.Settle(s.t.Context(), []feeds.Mark{{Shard: shard, Batch: &b, Done: len(b.Messages), Sent: time.Now()}}); err != nil {
				s.t.Fatal(err)
			}
			ctx := s.as(share, shard)
			if err := errors.Join(s.to.Publish(ctx, b.Messages)...); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// TestRecallOfRetries: a relay dies while it sends deferred messages again. The next one asks about
// them.
func TestRecallOfRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 30, 3)
		s.dieRetrying()
		s.run(time.Minute)
		s.expect(0)
	})
}

// replaying is a store in which an operator has asked for a replay of all deferred messages.
type replaying struct{ *memory.DB }

type replayingFeed struct{ feeds.Feed }

func (s replaying) Open(ctx context.Context, name string, m feeds.Member) (feeds.Feed, error) {
	f, err := s.DB.Open(ctx, name, m)
	return replayingFeed{f}, err
}

func (f replayingFeed) Due(ctx context.Context, want feeds.DueRequest) (feeds.Due, error) {
	due, err := f.Feed.Due(ctx, want)
	for i := range due.Messages {
		due.Messages[i].Job = 7
	}
	return due, err
}

// TestRecallOfReplays: a replay is sent although its message has arrived, also while a new owner has
// doubts about the former one.
func TestRecallOfReplays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, 30, 3)
		s.dieRetrying()
		s.write(30, 3)
		answer := time.Now().Add(20 * time.Second)
		s.to.refuse = func(name string) error {
			if name == "name1" && time.Now().Before(answer) {
				return postrider.NameUnavailable(errOdd)
			}
			return nil
		}
		s.from = replaying{s.store}
		s.run(time.Minute)
		s.expect(30)
	})
}
