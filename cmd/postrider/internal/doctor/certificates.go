package doctor

import (
	"cmp"
	"crypto/x509"
	"fmt"
	"sync"
	"time"
)

// renewBefore is the time before expiry at which a certificate should have been renewed. Automatic
// renewal happens weeks before expiry.
const renewBefore = 14 * 24 * time.Hour

// ending collects certificates that expire soon.
type ending struct {
	mu   sync.Mutex
	list []*x509.Certificate
}

func (e *ending) see(c *x509.Certificate) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, known := range e.list {
		if known.Equal(c) {
			return
		}
	}
	if time.Until(c.NotAfter) < renewBefore {
		e.list = append(e.list, c)
	}
}

func (e *ending) findings() (found []Finding) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.list {
		whose := c.Subject.CommonName
		if len(c.DNSNames) > 0 {
			whose = c.DNSNames[0]
		}
		found = append(found, Finding{
			Severity: Warning,
			Finding:  fmt.Sprintf("the certificate of %s ends on %s", cmp.Or(whose, "unknown"), c.NotAfter.UTC().Format("2006-01-02 15:04 MST")),
			Why:      "Connections fail from then on, and relays deliver nothing.",
			Fix:      "renew it; cert_file and key_file are read for each connection, so no restart is needed",
		})
	}
	return found
}
