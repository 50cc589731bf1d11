package stage

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Forward forwards connections between a queue and its clients to a target until the context ends.
// If its process is frozen, the network is silent; if it is killed, every connection breaks.
func Forward(ctx context.Context, listen, target string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // ctx ended
		}
		if err != nil {
			return err
		}
		go forward(client, target)
	}
}

func forward(client net.Conn, target string) {
	defer client.Close()
	server, err := net.DialTimeout("tcp", target, 5*time.Second)
	if err != nil {
		return
	}
	defer server.Close()
	// When one side has closed, close the other: none of the protocols continues after a
	// half-close.
	var once sync.WaitGroup
	once.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	_, _ = io.Copy(client, server)
	_ = client.Close()
	once.Wait()
}
