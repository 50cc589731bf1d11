package shard

import (
	"errors"
	"fmt"

	"github.com/postrider/postrider/store/feeds"
)

// deadlyStarts is how often a message may be begun in vain, by relays that died over it, before nobody tries again.
const deadlyStarts = 2

var errDeadly = errors.New("relay: relays have died while they sent it")

// deadly says why a message that relays have died over is not sent.
func deadly(deaths int) error { return fmt.Errorf("%w (%d times)", errDeadly, deaths) }

// suspects has messages sent one by one, because one of them may have killed the relays that had the shard before.
type suspects struct {
	left  int           // how many
	begun map[int64]int // those whose start was noted, and how many relays had begun them in vain
}

// start returns what is to be noted before a message is sent; nil if that has been done.
func (s *suspects) start(id int64, start feeds.Start) *feeds.Start {
	if _, ok := s.begun[id]; ok {
		return nil
	}
	return &start
}

// noted takes in that the start of a message was noted, and how many have begun it, this relay included.
func (s *suspects) noted(id int64, started int) {
	if s.begun == nil {
		s.begun = make(map[int64]int)
	}
	s.begun[id] = started - 1
	s.left--
}

// kills reports whether so many relays have died over a message that it is not sent.
func (s *suspects) kills(id int64) (deaths int, kills bool) {
	deaths = s.begun[id]
	return deaths, deaths >= deadlyStarts
}
