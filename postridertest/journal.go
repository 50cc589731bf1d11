package postridertest

import (
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// What is a kind of [Step].
type What string

// What can happen to a message in a [World].
const (
	Enqueued    What = "enqueued"    // committed by the producer
	Sent        What = "sent"        // accepted by the broker
	Unconfirmed What = "unconfirmed" // the relay got an error, whether or not the message has arrived
	Received    What = "received"    // handed to a consumer
	Handled     What = "handled"     // its effect was committed
	Repeated    What = "repeated"    // recognised by an inbox as received before, and skipped
	Waiting     What = "waiting"     // deferred by an inbox, behind a failed one of its key
	Failed      What = "failed"      // the handler has failed, and is to try again
	Dead        What = "dead"        // given up by an inbox
	Crashed     What = "crashed"     // the relay's process has died; there is no message
)

// Step is one thing that happened in a [World].
type Step struct {
	At      time.Time
	What    What
	By      string // the consumer, where there is one
	Message postrider.Message
	Err     string // the error, where there is one
}

// journal keeps what happened.
type journal struct {
	mu     sync.Mutex
	began  time.Time
	steps  []Step
	moved  int // steps that were progress
	inside int // calls under way

	parallel bool
	turn     chan struct{} // of a handler; a mutex would stop the time of a bubble while a handler sleeps
}

func newJournal(parallel bool) *journal {
	return &journal{began: time.Now(), parallel: parallel, turn: make(chan struct{}, 1)}
}

func (j *journal) add(s Step) {
	s.At, s.Message = time.Now(), copyMessage(s.Message)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.steps = append(j.steps, s)
	if s.What != Unconfirmed {
		j.moved++
	}
}

// enter notes that a call is under way, until the function that it returns is called.
func (j *journal) enter() (leave func()) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.inside++
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.inside--
	}
}

// handle is enter for handlers, which wait for each other unless they may run at the same time.
func (j *journal) handle() (done func()) {
	leave := j.enter()
	if j.parallel {
		return leave
	}
	j.turn <- struct{}{}
	return func() {
		<-j.turn
		leave()
	}
}

func (j *journal) idle() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.inside == 0
}

func (j *journal) count() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.steps)
}

func (j *journal) progress() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.moved
}

func (j *journal) all() []Step {
	j.mu.Lock()
	defer j.mu.Unlock()
	steps := slices.Clone(j.steps)
	for i := range steps {
		steps[i].Message = copyMessage(steps[i].Message)
	}
	return steps
}
