package rabbitmq

import (
	"errors"
	"net"
	"testing"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/postrider/postrider"
)

// flying returns a channel with two messages in flight, without a server, and the channel of its
// returns.
func flying(heard time.Time) (l *channel, returns chan amqp.Return) {
	returns = make(chan amqp.Return)
	hung := &link{connection: &connection{socket: socket{Conn: closer{end: func() { close(returns) }}}}}
	l = &channel{link: hung, ch: &amqp.Channel{}, returned: make(chan []amqp.Return), heard: heard}
	l.sent = []flight{{index: 0, id: "a", route: "q"}, {index: 1, id: "b", route: "q"}}
	go l.listen(returns)
	return l, returns
}

type closer struct {
	net.Conn
	end func()
}

func (c closer) Close() error {
	c.end()
	return nil
}

func outcomes(t *testing.T, l *channel) []error {
	errs := make([]error, 2)
	if l.collect(t.Context(), func(i int, err error) { errs[i] = err }) == nil {
		t.Error("the channel is used on")
	}
	return errs
}

// TestStall simulates a suspended process: the client may have dropped a return.
func TestStall(t *testing.T) {
	t.Parallel()
	l, _ := flying(time.Now().Add(-2 * stall))
	for i, err := range outcomes(t, l) {
		if !errors.Is(err, errStalled) || postrider.ClassOf(err) != postrider.ClassUnknown {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

func TestReturnOfNothing(t *testing.T) {
	t.Parallel()
	l, returns := flying(time.Now())
	defer close(returns)
	returns <- amqp.Return{MessageId: "b", RoutingKey: "q"}
	returns <- amqp.Return{MessageId: "another", RoutingKey: "q"}
	for i, err := range outcomes(t, l) {
		if !errors.Is(err, errConfused) || postrider.ClassOf(err) != postrider.ClassUnknown {
			t.Errorf("message %d: %v", i, err)
		}
	}
}

// TestStuckWrite has a peer that does not read.
func TestStuckWrite(t *testing.T) {
	t.Parallel()
	a, b := net.Pipe()
	defer b.Close()
	s := socket{a, 10 * time.Millisecond}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Fatal("written")
	}
	if _, err := s.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is still open")
	}
}
