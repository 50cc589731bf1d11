package stage

import (
	"net"

	"github.com/postrider/postrider/internal/port"
)

// Free returns a free address of this machine: the preferred one, if possible.
func Free(wish string) (string, error) {
	if l, err := net.Listen("tcp", wish); err == nil {
		return wish, l.Close()
	}
	return port.Free()
}
