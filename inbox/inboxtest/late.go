package inboxtest

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker/codec"
	"github.com/postrider/postrider/inbox"
)

// madeAt returns an ID that contains the given time.
func madeAt(at time.Time) postrider.ID {
	id := postrider.NewID()
	low := binary.BigEndian.Uint64(id[:8]) & 0xffff
	binary.BigEndian.PutUint64(id[:8], uint64(at.UnixMilli())<<16|low)
	return id
}

func (s *scene[Tx]) madeAgo(key, text string, age time.Duration) postrider.Message {
	m := message(key, text)
	m.ID = madeAt(time.Now().Add(-age))
	return m
}

// fromFuture returns a message from the far future, which is late in every window.
func (s *scene[Tx]) fromFuture(key, text string) postrider.Message {
	return s.madeAgo(key, text, -400*24*time.Hour)
}

// late checks that a message becomes a dead letter, without effect, if the store cannot know
// whether it was received before.
func late[Tx any](s *scene[Tx]) {
	ahead := s.fromFuture("", "ahead")
	s.mustHandle(ahead, inbox.Late)
	s.mustHandle(ahead, inbox.Repeated)
	s.wantDeferred("ahead dead")
	if d := s.deferred()[0]; d.LastError != inbox.ErrLate.Error() || d.Blocking {
		s.t.Errorf("%+v", d)
	}
	s.mustBeIdle()
	s.wantMarks()

	// A consumer can choose to handle them.
	accepted := []postrider.Message{s.fromFuture("", "accepted")}
	for _, want := range []inbox.Verdict{inbox.Handled, inbox.Repeated} {
		got, err := s.Store.Handle(s.ctx, consumer, accepted, true, s.marking(accepted))
		s.wantVerdicts(got, err, want)
	}
	s.mustHandle(accepted[0], inbox.Repeated)
	s.wantMarks("accepted")

	// One that fails can be retried like any other.
	failing := []postrider.Message{s.fromFuture("", "failing")}
	_, err := s.Store.Handle(s.ctx, consumer, failing, true, func(context.Context, Tx, []int) error { return errWork })
	if err == nil {
		s.t.Error("no error")
	}
	s.deferMessage(failing[0], again(1, 0))
	s.mustRetry("failing")
	s.mustHandle(failing[0], inbox.Repeated)
}

// lateAndBlocked checks that a late message of a blocked key becomes a dead letter and does not
// wait for its key.
func lateAndBlocked[Tx any](s *scene[Tx]) {
	head := message("k", "1")
	s.fail(head, again(1, 0))
	s.mustHandle(s.fromFuture("k", "ahead"), inbox.Late)
	s.mustHandle(message("k", "2"), inbox.Waiting)
	s.mustRetry("1")
	s.mustRetry("2")
	s.mustBeIdle()
	s.wantDeferred("ahead dead")
	s.wantMarks("1", "2")
}

// history checks that a new consumer handles messages that are older than the consumer itself: it
// has forgotten none.
func history[Tx any](s *scene[Tx]) {
	var msgs []postrider.Message
	var texts []string
	for _, days := range []int{400, 30, 29, 8, 7, 6, 1, 0} {
		msgs = append(msgs, s.madeAgo("", fmt.Sprint(days), time.Duration(days)*24*time.Hour))
		texts = append(texts, string(msgs[len(msgs)-1].Payload))
	}
	for range 2 {
		for i, m := range msgs {
			s.mustHandle(m, inbox.Handled)
			s.mustHandle(m, inbox.Repeated)
			msgs[i] = s.madeAgo("", texts[i], time.Since(m.ID.Time())+time.Minute) // not in the order of their times
		}
		if err := s.Store.Maintain(s.ctx); err != nil {
			s.t.Fatal(err)
		}
	}
	s.wantMarks(append(texts, texts...)...)

	// An old message fails, waits and is claimed like any other.
	old := func(text string) postrider.Message { return s.madeAgo("k", text, 20*24*time.Hour) }
	head, next := old("head"), old("next")
	s.fail(head, again(1, 0))
	s.mustHandle(head, inbox.Repeated)
	s.mustHandle(next, inbox.Waiting)
	s.mustHandle(next, inbox.Repeated)
	s.mustRetry("head")
	s.mustRetry("next")
	s.mustHandle(next, inbox.Repeated)
	claimed := old("claimed")
	for _, want := range []bool{true, false} {
		err := s.Do(s.ctx, func(ctx context.Context, tx Tx) error {
			fresh, err := s.Store.Claim(ctx, tx, consumer, claimed.ID)
			if fresh != want {
				s.t.Errorf("fresh is %v, want %v", fresh, want)
			}
			return err
		})
		if err != nil {
			s.t.Fatal(err)
		}
	}
	got, err := s.handle(old("a"), claimed, old("b"))
	s.wantVerdicts(got, err, inbox.Handled, inbox.Repeated, inbox.Handled)
	s.wantDeferred()
}

// withoutTime checks IDs that contain no time.
func withoutTime[Tx any](s *scene[Tx]) {
	random := message("k", "random")
	random.ID[6] = random.ID[6]&0x0f | 0x40
	named := message("k", "named")
	named.ID = codec.Identity("/shop", "order-7")
	if !named.ID.Time().IsZero() {
		s.t.Fatalf("%s has a time", named.ID)
	}
	for _, m := range []postrider.Message{random, named} {
		s.mustHandle(m, inbox.Handled)
		s.mustHandle(m, inbox.Repeated)
	}
	failing := message("k", "failing")
	failing.ID[6] = failing.ID[6]&0x0f | 0x40
	s.fail(failing, again(1, 0))
	s.mustHandle(failing, inbox.Repeated)
	s.mustHandle(random, inbox.Repeated)
	s.mustRetry("failing")
	s.mustHandle(failing, inbox.Repeated)
	s.wantMarks("random", "named", "failing")
}

// window redelivers messages continuously while the store forgets old ones.
func window[Tx any](s *scene[Tx]) {
	got, err := s.Store.Open(s.ctx, consumer)
	if err != nil || got != s.Window {
		s.t.Fatalf("%v, %v, want %v", got, err, s.Window)
	}
	const count = 12
	var msgs []postrider.Message
	for i := range count { // ages from slightly in the future to almost late
		msgs = append(msgs, s.madeAgo("", string(rune('a'+i)), s.Window*time.Duration(i-1)/count))
	}
	// Created before the consumer. It is remembered for a window from now on, and late after that.
	msgs = append(msgs, s.madeAgo("", "history", 400*24*time.Hour))
	dying := s.madeAgo("", "dead letter", 0)
	dying.ID[6] = dying.ID[6]&0x0f | 0x40 // its ID contains no time, and as a dead letter it is never forgotten
	s.fail(dying, dead(1))
	ctx, stop := context.WithCancel(s.ctx)
	var run sync.WaitGroup
	run.Go(func() {
		for ctx.Err() == nil {
			if err := s.Store.Maintain(s.ctx); err != nil {
				s.t.Error(err)
				return
			}
		}
	})
	lateOnes := make(map[postrider.ID]bool)
	end := time.Now().Add(s.Window * 10 / 7)
	for first := true; time.Now().Before(end); first = false {
		for i, m := range msgs {
			v, err := s.handle(m)
			if err != nil {
				s.t.Errorf("%s: %v", m.Payload, err)
				continue
			}
			age := time.Since(m.ID.Time())
			want := []inbox.Verdict{inbox.Repeated}
			switch {
			case first:
				want = []inbox.Verdict{inbox.Handled}
			case age > s.Window && !lateOnes[m.ID]:
				want = append(want, inbox.Late)
			}
			if !slices.Contains(want, v[0]) {
				s.t.Errorf("message %d, made %s ago: %s", i, age, v[0])
			}
			if v[0] == inbox.Late {
				lateOnes[m.ID] = true
			}
		}
		s.mustHandle(dying, inbox.Repeated)
		time.Sleep(s.Window / 200)
	}
	stop()
	run.Wait()
	// A store may forget a message later than it could, and still recognize it; but it must forget
	// some.
	if len(lateOnes) == 0 {
		s.t.Errorf("after %s nothing is forgotten in a window of %s", s.Window*10/7, s.Window)
	}
	marks := s.Marks(s.ctx)
	slices.Sort(marks)
	if len(marks) != count+1 || len(slices.Compact(slices.Clone(marks))) != count+1 {
		s.t.Errorf("effects %q", marks)
	}
	// Forgetting messages newer than the consumer does not make the rest of the history late.
	s.mustHandle(s.madeAgo("", "more history", 300*24*time.Hour), inbox.Handled)
	if d := s.deferred(); len(d) != 1+len(lateOnes) || d[0].ID != dying.ID {
		s.t.Errorf("%d deferred messages, want %d", len(d), 1+len(lateOnes))
	}
}
