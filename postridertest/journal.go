package postridertest

import (
	"slices"
	"sync"
	"time"

	"github.com/postrider/postrider"
)

// What is a kind of [Step].
type What string

// The kinds of steps in a [World].
const (
	Enqueued    What = "enqueued"    // committed by the producer
	Sent        What = "sent"        // accepted by the broker
	Unconfirmed What = "unconfirmed" // the relay got an error, whether or not the message arrived
	Received    What = "received"    // passed to a consumer
	Handled     What = "handled"     // its effect was committed
	Repeated    What = "repeated"    // received before by an inbox, and skipped
	Waiting     What = "waiting"     // deferred by an inbox, behind a failed one of its key
	Failed      What = "failed"      // the handler failed, and the message will be retried
	Dead        What = "dead"        // became a dead letter of an inbox
	Crashed     What = "crashed"     // the relay's process died; there is no message
)

// Step is one event in a [World].
type Step struct {
	At      time.Time
	What    What
	By      string // the consumer, if there is one
	Message postrider.Message
	Err     string // the error, if there is one
}

// journal records the events.
type journal struct {
	mu     sync.Mutex
	began  time.Time
	steps  []Step
	moved  int // number of steps that were progress
	inside int // number of calls in progress

	parallel bool
	turn     chan struct{} // semaphore of handlers; a mutex would stop the time of a bubble while a handler sleeps
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

// enter records that a call is in progress, until the returned function is called.
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

// handle is like enter, for handlers. They run one at a time unless the world is parallel.
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
