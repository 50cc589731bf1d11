package cli

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// certificate serves the certificate of a listener. It checks the files every few seconds, because
// certificates are renewed while the process runs.
type certificate struct {
	certFile, keyFile string

	mu     sync.Mutex
	kept   *tls.Certificate
	looked time.Time
	stamp  [2]time.Time // modification times of the files that kept was loaded from
}

const lookAtFiles = 5 * time.Second

// get returns the certificate. If the files cannot be loaded, it keeps serving the previous one.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != nil && time.Since(c.looked) < lookAtFiles {
		return c.kept, nil
	}
	c.looked = time.Now()
	stamp := [2]time.Time{changed(c.certFile), changed(c.keyFile)}
	if c.kept != nil && stamp == c.stamp {
		return c.kept, nil
	}
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err == nil {
		c.kept, c.stamp = &pair, stamp
	} else if c.kept == nil {
		return nil, fmt.Errorf("the certificate %s with the key %s: %w", c.certFile, c.keyFile, err)
	}
	return c.kept, nil
}

func changed(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
