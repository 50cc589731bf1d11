package bench

import (
	"net"
	"testing"
)

func TestCountedConn(t *testing.T) {
	client, server := net.Pipe()
	defer client.Close()
	defer server.Close()
	var count trips
	conn := &countedConn{Conn: client, trips: &count}
	ask := func(times int) {
		for range times {
			go server.Read(make([]byte, 8)) //nolint:errcheck // the write below sees it
			if _, err := conn.Write([]byte("question")); err != nil {
				t.Fatal(err)
			}
		}
	}
	hear := func(times int) {
		for range times {
			go server.Write([]byte("answer")) //nolint:errcheck // the read below sees it
			if _, err := conn.Read(make([]byte, 8)); err != nil {
				t.Fatal(err)
			}
		}
	}
	hear(1) // unasked
	ask(1)
	hear(2) // one answer, in two parts
	ask(3)  // pipelined
	hear(1)
	ask(1) // not answered
	if n := count.Load(); n != 2 {
		t.Errorf("%d round trips, want 2", n)
	}
}
