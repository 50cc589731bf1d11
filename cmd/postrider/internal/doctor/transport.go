package doctor

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// askTransport checks whether the network between here and the server could read or forge messages.
func askTransport(_ context.Context, p *target) ([]Finding, error) {
	conn := p.tx.Conn().PgConn().Conn()
	_, encrypted := conn.(*tls.Conn)
	if stays(conn.RemoteAddr()) {
		return nil, nil
	}
	const fix = "add sslmode=verify-full to the address, and sslrootcert with the file of the authority if the system does not know it"
	switch {
	case !encrypted:
		return []Finding{{Severity: Warning, Finding: "the connection is not encrypted",
			Why: "An attacker on the network can read passwords and messages, and can forge messages.", Fix: fix}}, nil
	case !verified(&p.tx.Conn().Config().Config):
		return []Finding{{Severity: Warning, Finding: "the connection is encrypted, and the server's certificate is not verified",
			Why: "An attacker on the network can impersonate the server.", Fix: fix}}, nil
	}
	return nil, nil
}

// stays reports whether traffic to an address stays on this machine.
func stays(to net.Addr) bool {
	address, ok := to.(*net.TCPAddr)
	return !ok || address.IP.IsLoopback()
}

// verified reports whether all ways to connect that a configuration allows verify the server's
// certificate.
func verified(cfg *pgconn.Config) bool {
	ways := []*tls.Config{cfg.TLSConfig}
	for _, other := range cfg.Fallbacks {
		ways = append(ways, other.TLSConfig)
	}
	for _, way := range ways {
		if way == nil || way.InsecureSkipVerify && way.VerifyPeerCertificate == nil && way.VerifyConnection == nil {
			return false
		}
	}
	return true
}
