package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/config"
	"github.com/postrider/postrider/internal/need"

	_ "github.com/postrider/postrider/broker/redis"
)

// TestCertificateEnds has a broker show a certificate that ends soon, or late.
func TestCertificateEnds(t *testing.T) {
	t.Parallel()
	for days, want := range map[int]bool{10: true, 20: false} {
		address, ca := certified(t, time.Duration(days)*24*time.Hour)
		d := Destination{Name: "d", Config: config.Destination{URL: "rediss://" + address, Options: map[string]string{"ca_file": ca}}}
		said := false
		for _, f := range d.examine(t.Context()) {
			said = said || strings.Contains(f.Finding, "the certificate of broker.test ends on")
			if f.Severity == Problem {
				t.Errorf("%d days: %s", days, f.Finding)
			}
		}
		if said != want {
			t.Errorf("%d days: warned %v, want %v", days, said, want)
		}
	}
}

// certified puts TLS before Redis, with a certificate that ends after a while, and returns the file of its authority.
func certified(t *testing.T, valid time.Duration) (address, ca string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"}, DNSNames: []string{"broker.test"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(valid),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	ca = filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(need.Env(t, "POSTRIDER_TEST_REDIS", "redis"))
	if err != nil {
		t.Fatal(err)
	}
	var run sync.WaitGroup
	t.Cleanup(run.Wait)
	t.Cleanup(func() { _ = l.Close() })
	run.Go(func() {
		for {
			front, err := l.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", u.Host)
			if err != nil {
				_ = front.Close()
				continue
			}
			run.Go(func() { _, _ = io.Copy(front, back); _ = front.Close() })
			run.Go(func() { _, _ = io.Copy(back, front); _ = back.Close() })
		}
	})
	return l.Addr().String(), ca
}
