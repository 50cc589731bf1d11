package inboxtest

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/inbox"
)

// madeAt returns an ID as it would have been made at another time.
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

// old returns a message that is outside of every window.
func (s *scene[Tx]) old(text string) postrider.Message { return s.madeAgo("", text, 400*24*time.Hour) }

// late holds that what may have been handled long ago is a dead letter, and no effect.
func late[Tx any](s *scene[Tx]) {
	old, ahead := s.old("old"), s.madeAgo("", "ahead", -400*24*time.Hour)
	for _, m := range []postrider.Message{old, ahead} {
		s.mustHandle(m, inbox.Late)
		s.mustHandle(m, inbox.Repeated)
	}
	s.wantAside("old dead", "ahead dead")
	if d := s.aside()[0]; d.LastError != inbox.ErrLate.Error() || d.Blocking {
		s.t.Errorf("%+v", d)
	}
	s.mustBeIdle()
	s.wantMarks()

	// A consumer may choose to handle them.
	accepted := []postrider.Message{s.old("accepted")}
	for _, want := range []inbox.Verdict{inbox.Handled, inbox.Repeated} {
		got, err := s.Store.Handle(s.ctx, consumer, accepted, true, s.marking(accepted))
		s.wantVerdicts(got, err, want)
	}
	s.mustHandle(accepted[0], inbox.Repeated)
	s.wantMarks("accepted")

	// One that fails can be tried again like any other.
	failing := []postrider.Message{s.old("failing")}
	_, err := s.Store.Handle(s.ctx, consumer, failing, true, func(context.Context, Tx, []int) error { return errWork })
	if err == nil {
		s.t.Error("no error")
	}
	s.shelve(failing[0], again(1, 0))
	s.mustRetry("failing")
	s.mustHandle(failing[0], inbox.Repeated)
}

// lateAndBlocked holds that a late message does not come in by waiting for another one.
func lateAndBlocked[Tx any](s *scene[Tx]) {
	head := message("k", "1")
	s.fail(head, again(1, 0))
	s.mustHandle(s.madeAgo("k", "old", 400*24*time.Hour), inbox.Late)
	s.mustHandle(message("k", "2"), inbox.Waiting)
	s.mustRetry("1")
	s.mustRetry("2")
	s.mustBeIdle()
	s.wantAside("old dead")
	s.wantMarks("1", "2")
}

// withoutTime is about IDs that do not tell their time.
func withoutTime[Tx any](s *scene[Tx]) {
	random := message("k", "random")
	random.ID[6] = random.ID[6]&0x0f | 0x40
	named := message("k", "named")
	named.ID, named.WireID = postrider.ID{}, "order-7"
	id, err := inbox.Identity(&named)
	if err != nil || id.Time() != (time.Time{}) {
		s.t.Fatalf("%s, %v", id, err)
	}
	named.ID = id
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

// window delivers messages again and again, with the store forgetting all the while.
func window[Tx any](s *scene[Tx]) {
	got, err := s.Store.Open(s.ctx, consumer)
	if err != nil || got != s.Window {
		s.t.Fatalf("%v, %v, want %v", got, err, s.Window)
	}
	const count = 12
	var msgs []postrider.Message
	for i := range count { // of every age from a little ahead to almost late
		msgs = append(msgs, s.madeAgo("", string(rune('a'+i)), s.Window*time.Duration(i-1)/count))
	}
	dying := s.madeAgo("", "dead letter", 0)
	dying.ID[6] = dying.ID[6]&0x0f | 0x40 // does not tell its age, and is not forgotten either
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
	for _, m := range msgs[1:] {
		if time.Since(m.ID.Time()) > s.Window*9/7 && !lateOnes[m.ID] {
			s.t.Errorf("a message made %s ago is not late in a window of %s", time.Since(m.ID.Time()), s.Window)
		}
	}
	marks := s.Marks(s.ctx)
	if slices.Sort(marks); len(slices.Compact(marks)) != count {
		s.t.Errorf("effects %q", marks)
	}
	if d := s.aside(); len(d) != 1+len(lateOnes) || d[0].ID != dying.ID {
		s.t.Errorf("%d letters, want %d", len(d), 1+len(lateOnes))
	}
}
