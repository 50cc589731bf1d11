package doctor

import (
	"context"
	"crypto/tls"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// askTransport finds out whether somebody between here and the server can listen, or answer in its place.
func askTransport(_ context.Context, p *patient) ([]Finding, error) {
	conn := p.tx.Conn().PgConn().Conn()
	_, encrypted := conn.(*tls.Conn)
	if stays(conn.RemoteAddr()) {
		return nil, nil
	}
	const fix = "add sslmode=verify-full to the address, and sslrootcert with the file of the authority if the system does not know it"
	switch {
	case !encrypted:
		return []Finding{{Severity: Warning, Finding: "the connection is not encrypted",
			Why: "Whoever is on the way reads passwords and messages, and can write some of his own.", Fix: fix}}, nil
	case !verified(&p.tx.Conn().Config().Config):
		return []Finding{{Severity: Warning, Finding: "the connection is encrypted, and the server's certificate is not verified",
			Why: "Whoever is on the way can pretend to be the server.", Fix: fix}}, nil
	}
	return nil, nil
}

// stays reports whether what is sent to an address does not leave this machine.
func stays(to net.Addr) bool {
	address, ok := to.(*net.TCPAddr)
	return !ok || address.IP.IsLoopback()
}

// verified reports whether every way to connect that a configuration allows asks the server for a certificate that somebody vouches for.
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
