package stage

import (
	"net"

	"github.com/postrider/postrider/internal/port"
)

// Free returns an address of this machine where nobody listens: the one that is wished for, if possible.
func Free(wish string) (string, error) {
	if l, err := net.Listen("tcp", wish); err == nil {
		return wish, l.Close()
	}
	return port.Free()
}
