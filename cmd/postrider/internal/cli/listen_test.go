package cli

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/postrider/postrider/internal/port"
)

// TestListenerWithACertificate holds that a listener with a certificate answers HTTPS alone, and shows a renewed certificate without a restart.
func TestListenerWithACertificate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	c := &certificate{certFile: filepath.Join(folder, "tls.crt"), keyFile: filepath.Join(folder, "tls.key")}
	h := httpListener{what: "console", listen: port.For(t), certificate: c, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil {
			t.Error("a request without TLS")
		}
	})}
	if _, err := h.start(t.Context(), slog.New(slog.DiscardHandler)); err == nil {
		t.Fatal("it starts without its files")
	}
	first := writeCertificate(t, c)
	stop, err := h.start(t.Context(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	get := func(url string, trusted *x509.CertPool) (int, error) {
		client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: trusted}, DisableKeepAlives: true, ForceAttemptHTTP2: true,
		}}
		answer, err := client.Get(url)
		if err != nil {
			return 0, err
		}
		defer answer.Body.Close()
		_, err = io.Copy(io.Discard, answer.Body)
		return answer.StatusCode, err
	}
	if code, err := get("https://"+h.listen, first); code != http.StatusOK {
		t.Errorf("HTTPS: %d, %v", code, err)
	}
	if code, _ := get("http://"+h.listen, first); code == http.StatusOK {
		t.Error("it answers plain HTTP")
	}

	if err := os.WriteFile(c.certFile, []byte("half a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.lookAgain()
	if code, err := get("https://"+h.listen, first); code != http.StatusOK {
		t.Errorf("while the files are written: %d, %v", code, err)
	}
	second := writeCertificate(t, c)
	c.lookAgain()
	if code, err := get("https://"+h.listen, second); code != http.StatusOK {
		t.Errorf("with the renewed certificate: %d, %v", code, err)
	}
}

func (c *certificate) lookAgain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looked = time.Time{}
}

// writeCertificate writes a new certificate, and returns it as one to trust.
func writeCertificate(t *testing.T, c *certificate) *x509.CertPool {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	for path, block := range map[string]*pem.Block{c.certFile: {Type: "CERTIFICATE", Bytes: der}, c.keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted.AddCert(made)
	return trusted
}
