package intake

import "time"

// place is a message's slot, which it gives up while it waits.
type place struct {
	part  *Part
	bytes int // of the payload
	has   bool
}

// Leave gives the slot to another message. This message then counts as waiting.
func (s *place) Leave() {
	<-s.part.in.slots
	s.has = false
	s.wait(1)
}

// Enter waits for a slot. It returns false if the part has ended.
func (s *place) Enter() bool {
	defer s.wait(-1)
	s.has = s.part.take()
	return s.has
}

func (s *place) wait(messages int) {
	in := s.part.in
	in.mu.Lock()
	defer in.mu.Unlock()
	in.wait(messages, messages*s.bytes)
}

// sleep waits for the backoff without a slot, and then for a slot.
func (s *place) sleep(pause time.Duration) bool {
	s.Leave()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.part.ctx.Done():
	}
	return s.Enter()
}
