package shard

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
)

// maxStarts is how often a relay may die while it sends a message before the message is not sent
// again.
const maxStarts = 2

var errCrashes = errors.New("relay: relays have died while they sent it")

// suspectError returns the reason that a suspect message is not sent.
func suspectError(deaths int) error { return fmt.Errorf("%w (%d times)", errCrashes, deaths) }

// suspects makes the machine send messages one by one, because one of them may have crashed the
// previous owners of the shard.
type suspects struct {
	left  int           // number of messages to send alone
	begun map[int64]int // messages whose start was recorded, and the number of earlier starts that never ended
}

// start returns the start to record before a message is sent; nil if it was recorded.
func (s *suspects) start(id int64, start feeds.Start) *feeds.Start {
	if _, ok := s.begun[id]; ok {
		return nil
	}
	return &start
}

// noted stores that the start of a message was recorded, and the number of starts, this one
// included.
func (s *suspects) noted(id int64, started int) {
	if s.begun == nil {
		s.begun = make(map[int64]int)
	}
	s.begun[id] = started - 1
	s.left--
}

// kills reports whether too many relays have died while sending a message.
func (s *suspects) kills(id int64) (deaths int, kills bool) {
	deaths = s.begun[id]
	return deaths, deaths >= maxStarts
}
