package stage

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

// Forward is the network between a queue and those who use it: it passes connections on to a target until the context ends.
// Its process can be frozen, and then everything in it is silent, or killed, and then every connection breaks.
func Forward(ctx context.Context, listen, target string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	for {
		client, err := l.Accept()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
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
	// When one side has ended there is nothing to wait for: none of the protocols speaks on after half a close.
	var once sync.WaitGroup
	once.Go(func() { _, _ = io.Copy(server, client); _ = server.Close() })
	_, _ = io.Copy(client, server)
	_ = client.Close()
	once.Wait()
}
