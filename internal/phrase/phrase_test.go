package phrase

import (
	"strings"
	"testing"
	"time"
)

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{
		900 * time.Millisecond:         "0s",
		3*time.Minute + 12*time.Second: "3m12s",
		5*time.Hour + 59*time.Minute:   "5h59m",
		49 * time.Hour:                 "2d1h",
		-3 * time.Second:               "-3s",
	} {
		if got := Age(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{"order/42": "order/42", "a b": "'a b'", "it's": `'it'\''s'`, "": "''", "$(x)": "'$(x)'"} {
		if got := ShellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}

func TestWithoutPasswords(t *testing.T) {
	for _, text := range []string{
		"dial nats://rider:s3cret@host:4222: refused", "host=h password=s3cret", "password='s3cret' host=h", `token="s3cret"`, "Secret = s3cret; x",
	} {
		if got := WithoutPasswords(text); strings.Contains(got, "s3cret") {
			t.Errorf("%q became %q", text, got)
		}
	}
	if text := "rider at host/db: no password given"; WithoutPasswords(text) != text {
		t.Errorf("a harmless text became %q", WithoutPasswords(text))
	}
}
