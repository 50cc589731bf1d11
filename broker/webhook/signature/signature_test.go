package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	testSecret  = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	otherSecret = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDGkjGNiyKOmc="
	// The key pair of RFC 8032, test 1.
	testPrivate = "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="
	testPublic  = "whpk_11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
)

var signedAt = time.Unix(1614265330, 0)

func TestSignVectors(t *testing.T) {
	for _, c := range []struct{ secret, id, body, want string }{
		{testSecret, "msg_p5jXN8AQM9LWM0D4loKWxJek", `{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
		{testSecret, "x", "", "v1," + expectMAC(testSecret, "x.1614265330.")},
		{otherSecret, "x", "\x00\xff", "v1," + expectMAC(otherSecret, "x.1614265330.\x00\xff")},
	} {
		s, err := NewSigner(c.secret)
		if err != nil {
			t.Fatal(err)
		}
		if got := sign(s, c.id, signedAt, c.body).Get("webhook-signature"); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func expectMAC(secret, content string) string {
	raw, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	h := hmac.New(sha256.New, raw)
	h.Write([]byte(content))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

func sign(s *Signer, id string, at time.Time, body string) http.Header {
	h := http.Header{}
	s.Sign(h, id, at, []byte(body))
	return h
}

func headers(id, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", strconv.FormatInt(signedAt.Unix(), 10))
	h.Set("webhook-signature", signature)
	return h
}

func verifier(t testing.TB, secrets ...string) *Verifier {
	t.Helper()
	v, err := NewVerifier(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestUnsigned checks that a signer without secrets still sets ID and time.
func TestUnsigned(t *testing.T) {
	s, err := NewSigner()
	if err != nil {
		t.Fatal(err)
	}
	if h := sign(s, "id", signedAt, "body"); len(h) != 2 || h.Get("webhook-id") != "id" || h.Get("webhook-timestamp") != "1614265330" {
		t.Errorf("got %v", h)
	}
}

// TestRotation checks that a message signed with several secrets is verified with any of them, of
// either kind.
func TestRotation(t *testing.T) {
	s, err := NewSigner(testSecret, otherSecret, testPrivate)
	if err != nil {
		t.Fatal(err)
	}
	signature := sign(s, "id", signedAt, "body").Get("webhook-signature")
	if parts := strings.Fields(signature); len(parts) != 3 || !strings.HasPrefix(parts[2], "v1a,") {
		t.Fatalf("got %q", signature)
	}
	third := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 24))
	for _, c := range []struct {
		secrets []string
		ok      bool
	}{
		{[]string{testSecret}, true}, {[]string{otherSecret}, true}, {[]string{testPublic}, true}, {[]string{testPrivate}, true},
		{[]string{third, otherSecret}, true}, {[]string{third}, false},
		{[]string{"whpk_" + base64.StdEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))}, false},
	} {
		if err := verifier(t, c.secrets...).Verify(headers("id", signature), signedAt, []byte("body")); (err == nil) != c.ok {
			t.Errorf("%d secrets: got %v", len(c.secrets), err)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	s, _ := NewSigner(testSecret)
	good := sign(s, "id", signedAt, "body").Get("webhook-signature")
	value := strings.TrimPrefix(good, "v1,")
	at := func(offset time.Duration) http.Header { return sign(s, "id", signedAt.Add(offset), "body") }
	with := func(name, value string) http.Header {
		h := headers("id", good)
		h.Set(name, value)
		return h
	}
	v := verifier(t, testSecret)
	for name, c := range map[string]struct {
		h    http.Header
		body string
		ok   bool
	}{
		"good":               {headers("id", good), "body", true},
		"second of many":     {headers("id", "v1,AAAA v2,xxxx  "+good+" v1,BBBB"), "body", true},
		"unknown versions":   {headers("id", "v9,"+value+" "+good), "body", true},
		"just old enough":    {at(-5 * time.Minute), "body", true},
		"just early enough":  {at(5 * time.Minute), "body", true},
		"too old":            {at(-5*time.Minute - time.Second), "body", false},
		"too early":          {at(5*time.Minute + time.Second), "body", false},
		"other body":         {headers("id", good), "Body", false},
		"other id":           {headers("idd", good), "body", false},
		"other time":         {with("webhook-timestamp", "1614265331"), "body", false},
		"no number":          {with("webhook-timestamp", "soon"), "body", false},
		"a padded number":    {with("webhook-timestamp", "+1614265330"), "body", false},
		"a huge number":      {with("webhook-timestamp", "99999999999999999999"), "body", false},
		"the largest number": {with("webhook-timestamp", "9223372036854775807"), "body", false},
		"no version":         {headers("id", value), "body", false},
		"only a version":     {headers("id", "v1"), "body", false},
		"other version":      {headers("id", "v1a,"+value), "body", false},
		"nothing":            {http.Header{}, "body", false},
		"no id":              {with("webhook-id", ""), "body", false},
		"no signature":       {with("webhook-signature", ""), "body", false},
		"behind too many":    {headers("id", strings.Repeat("v1,AAAA ", maxSignatures)+good), "body", false},
	} {
		err := v.Verify(c.h, signedAt, []byte(c.body))
		if (err == nil) != c.ok || err != nil && !errors.Is(err, ErrNotVerified) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestBadSecrets(t *testing.T) {
	encode := base64.StdEncoding.EncodeToString
	for _, secret := range []string{
		"", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_!!secret!!", "whsec_" + encode(make([]byte, 23)),
		"whsec_" + encode(make([]byte, 65)), "whsk_" + encode(make([]byte, 31)), "whpk_" + encode(make([]byte, 33)), "other_" + encode(make([]byte, 32)),
	} {
		_, err := NewSigner(testSecret, secret)
		if err == nil || !strings.Contains(err.Error(), "secrets[1]") || strings.Contains(err.Error(), "!!") {
			t.Errorf("%q: got %v", secret, err)
		}
	}
	if _, err := NewSigner(testPublic); err == nil || !strings.Contains(err.Error(), "public") {
		t.Errorf("got %v", err)
	}
	if _, err := NewVerifier(); err == nil {
		t.Error("a verifier without secrets was made")
	}
}

// FuzzVerify looks for panics, and for unsigned content that is verified.
func FuzzVerify(f *testing.F) {
	s, _ := NewSigner(testSecret, testPrivate)
	good := sign(s, "id", signedAt, "body").Get("webhook-signature")
	f.Add("id", "1614265330", good, []byte("body"))
	f.Add("", "-1", "v1, v1a,", []byte{})
	f.Add("id", "1614265330", "v1a,"+base64.StdEncoding.EncodeToString(make([]byte, 64)), []byte("body"))
	v := verifier(f, testSecret, testPublic)
	f.Fuzz(func(t *testing.T, id, timestamp, signature string, body []byte) {
		h := http.Header{}
		h.Set("webhook-id", id)
		h.Set("webhook-timestamp", timestamp)
		h.Set("webhook-signature", signature)
		if v.Verify(h, signedAt, body) == nil && (id != "id" || string(body) != "body") {
			t.Errorf("%q %q %q %q is verified", id, timestamp, signature, body)
		}
		_, _ = parseKey(signature)
	})
}
