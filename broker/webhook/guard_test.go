package webhook

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

func TestGuardRefuses(t *testing.T) {
	t.Parallel()
	g, _ := newGuard(&Config{})
	corpus := strings.Fields(`
		0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.0.0.1 10.255.255.255 100.64.0.0 100.64.0.1 100.100.100.200 100.127.255.255
		127.0.0.1 127.0.0.53 127.1.2.3 127.255.255.255 169.254.0.1 169.254.169.254 169.254.170.2 169.254.255.255 168.63.129.16
		172.16.0.1 172.20.10.5 172.31.255.255 192.0.0.1 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1 192.0.2.255 192.88.99.1
		192.168.0.1 192.168.1.1 192.168.255.255 198.18.0.1 198.19.255.255 198.51.100.7 203.0.113.9 224.0.0.1 224.0.0.251
		239.255.255.250 240.0.0.1 254.1.2.3 255.255.255.254 255.255.255.255
		:: ::1 ::2 ::127.0.0.1 ::8.8.8.8 ::ffff:127.0.0.1 ::ffff:7f00:1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:0:127.0.0.1
		64:ff9b::127.0.0.1 64:ff9b::10.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 100::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2
		2001:2::1 2001:10::1 2001:20::1 2001:db8::1 2001:db8:ffff::1 2002:7f00:1::1 2002:a00:1:: 3fff::1 3fff:fff::1 5f00::1 fc00::1
		fd00::1 fd00:ec2::254 fdff::1 fe80::1 fe80::1%eth0 febf::1 fec0::1 ff00::1 ff02::1 ff02::fb ff05::2 4000::1 8000::1`)
	for _, text := range corpus {
		err := g.control(t.Context(), "tcp", netip.AddrPortFrom(netip.MustParseAddr(text), 80).String(), nil)
		var forbidden *ForbiddenError
		if !errors.As(err, &forbidden) || !strings.Contains(err.Error(), "allow_") {
			t.Errorf("%s: got %v, want it refused with the knob's name", text, err)
		}
	}
	t.Logf("%d addresses", len(corpus))
	for _, text := range []string{"", "nonsense", "host:80", "127.0.0.1", "0x7f.1:80", "127.1:80", "[::1%:80", "2130706433:80"} {
		if g.control(t.Context(), "tcp", text, nil) == nil {
			t.Errorf("%q was let through", text)
		}
	}
}

func TestGuardAllows(t *testing.T) {
	t.Parallel()
	g, _ := newGuard(&Config{})
	for _, text := range strings.Fields(`1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255
		128.0.0.0 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0
		223.255.255.255 ::ffff:8.8.8.8 2001:200::1 2001:4860:4860::8888 2003::1 2400:cb00::1 2606:4700::1111 2a00::1 3ffe::1`) {
		if err := g.check(netip.MustParseAddr(text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	exceptions, err := newGuard(&Config{
		AllowLoopback: true, AllowPrivate: []string{"10.1.2.3/16", "fd00:1::/32", nat64.String(), "fe80::/10"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "::ffff:127.9.9.9": true, "10.1.0.1": true, "10.2.0.1": false, "fd00:1::9": true,
		"fd00:2::9": false, "64:ff9b::8.8.8.8": true, "64:ff9b::192.168.0.1": false, "64:ff9b::10.1.0.1": true, "fe80::1%eth0": true,
		"192.168.0.1": false,
	} {
		if got := exceptions.check(netip.MustParseAddr(text)) == nil; got != want {
			t.Errorf("%s: allowed is %v, want %v", text, got, want)
		}
	}
}

// TestOddNotations tries names for this machine's server that some resolvers accept: none may reach
// it.
func TestOddNotations(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	for _, host := range []string{
		"127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "017700000001", "0177.0.0.1", "127.0.0.1.", "0", "0.0.0.0",
		"localhost", "LOCALHOST", "localhost.", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]",
		"①②⑦.⓪.⓪.①", "127。0。0。1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "%31%32%37.0.0.1",
	} {
		p, err := NewPublisher(Config{URL: "http://" + host + ":" + port, Timeout: 2 * time.Second})
		if err != nil {
			continue // refused earlier
		}
		err = one(t.Context(), p, letter())
		if err == nil || postrider.ClassOf(err) == postrider.ClassUnknown {
			t.Errorf("%s: got %v", host, err)
		}
		_ = p.Close()
	}
	if hits.Load() != 0 {
		t.Errorf("the server was reached %d times", hits.Load())
	}
}

// TestRebinding resolves a name to a public address first and to this machine later: the dial must
// detect that.
func TestRebinding(t *testing.T) {
	t.Parallel()
	var hits atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { hits.Add(1) }))
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())

	var loopbackNow atomic.Bool
	nameServer := serveDNS(t, func() [4]byte {
		if loopbackNow.Load() {
			return [4]byte{127, 0, 0, 1}
		}
		return [4]byte{192, 0, 2, 1}
	})
	p, err := NewPublisher(Config{
		URL: "http://rebind.test.:" + port, Timeout: 3 * time.Second,
		AllowPrivate: []string{"192.0.2.0/24"}, // stands for a public network and leads nowhere
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.dialer.Resolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", nameServer)
	}}
	var forbidden *ForbiddenError
	if err := one(t.Context(), p, letter()); postrider.ClassOf(err) != postrider.ClassUnavailable || errors.As(err, &forbidden) {
		t.Errorf("first: got %v, want unavailable", err)
	}
	loopbackNow.Store(true)
	if err := one(t.Context(), p, letter()); postrider.ScopeOf(err) != postrider.ScopeDestination || !errors.As(err, &forbidden) {
		t.Errorf("then: got %v, want it forbidden", err)
	}
	if hits.Load() != 0 {
		t.Errorf("the server was reached %d times", hits.Load())
	}
}

// serveDNS answers every question for an IPv4 address, and returns no records for others.
func serveDNS(t *testing.T, answer func() [4]byte) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		buf := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(buf)
			if err != nil {
				return
			}
			end := 12
			for end < n && buf[end] != 0 {
				end += int(buf[end]) + 1
			}
			end += 5 // the root, the type and the class
			if end > n {
				continue
			}
			reply := append([]byte{}, buf[:end]...)
			binary.BigEndian.PutUint16(reply[2:], 0x8180)
			for _, at := range []int{6, 8, 10} { // no answer, authority or additional records
				binary.BigEndian.PutUint16(reply[at:], 0)
			}
			if binary.BigEndian.Uint16(buf[end-4:]) == 1 {
				ip := answer()
				reply[7] = 1
				reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				reply = append(reply, ip[:]...)
			}
			_, _ = conn.WriteTo(reply, from)
		}
	}()
	return conn.LocalAddr().String()
}
