package stage

import "net"

// Free returns an address of this machine where nobody listens: the one that is wished for, if possible.
func Free(wish string) (string, error) {
	for _, address := range []string{wish, "127.0.0.1:0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		return l.Addr().String(), l.Close()
	}
	_, err := net.Listen("tcp", "127.0.0.1:0")
	return "", err
}
