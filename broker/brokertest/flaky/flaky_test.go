package flaky_test

import (
	"bufio"
	"io"
	"net"
	"testing"
	"time"

	"github.com/postrider/postrider/broker/brokertest/flaky"
)

// echo starts a server that echoes every line.
func echo(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	return l.Addr().String()
}

type client struct {
	net.Conn
	*bufio.Reader
}

func dial(t *testing.T, p *flaky.Proxy) client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return client{c, bufio.NewReader(c)}
}

// say sends a line and returns the answer or the error.
func (c client) say(line string, within time.Duration) (string, error) {
	if _, err := c.Conn.Write([]byte(line + "\n")); err != nil {
		return "", err
	}
	_ = c.SetReadDeadline(time.Now().Add(within))
	answer, err := c.ReadString('\n')
	return answer, err
}

func TestGoodNetwork(t *testing.T) {
	c := dial(t, flaky.Listen(t, echo(t)))
	if answer, err := c.say("hello", time.Minute); err != nil || answer != "hello\n" {
		t.Errorf("got %q, %v", answer, err)
	}
}

func TestCutAndRestore(t *testing.T) {
	p := flaky.Listen(t, echo(t))
	c := dial(t, p)
	if _, err := c.say("hello", time.Minute); err != nil {
		t.Fatal(err)
	}
	p.Cut()
	if answer, err := c.say("anybody?", time.Minute); err == nil {
		t.Errorf("got %q over a cut connection", answer)
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come before or after Dial returns
		if answer, err := (client{c, bufio.NewReader(c)}).say("anybody?", time.Minute); err == nil {
			t.Errorf("got %q over a cut network", answer)
		}
		_ = c.Close()
	}
	p.Restore()
	if _, err := dial(t, p).say("hello", time.Minute); err != nil {
		t.Error(err)
	}
}

func TestSwallow(t *testing.T) {
	p := flaky.Listen(t, echo(t))
	c := dial(t, p)
	if _, err := c.say("hello", time.Minute); err != nil {
		t.Fatal(err)
	}
	p.SwallowAnswers()
	if answer, err := c.say("swallowed", 50*time.Millisecond); err == nil {
		t.Errorf("got %q", answer)
	}
	p.Restore()
	if answer, err := c.say("too late", time.Minute); err == nil {
		t.Errorf("got %q on a connection that has lost bytes", answer)
	}
	if _, err := dial(t, p).say("hello", time.Minute); err != nil {
		t.Error(err)
	}
}

func TestDelay(t *testing.T) {
	p := flaky.Listen(t, echo(t))
	c := dial(t, p)
	p.Delay(30 * time.Millisecond)
	begin := time.Now()
	if _, err := c.say("slow", time.Minute); err != nil || time.Since(begin) < 30*time.Millisecond {
		t.Errorf("answered after %v, %v", time.Since(begin), err)
	}
}

func TestHoldRequests(t *testing.T) {
	p := flaky.Listen(t, echo(t))
	c := dial(t, p)
	release := p.HoldRequests()
	if answer, err := c.say("held", 50*time.Millisecond); err == nil {
		t.Errorf("got %q", answer)
	}
	release()
	if answer, err := c.say("more", time.Minute); err != nil || answer != "held\n" {
		t.Errorf("got %q, %v", answer, err)
	}
}
