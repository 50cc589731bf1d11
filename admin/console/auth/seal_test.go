package auth

import (
	"encoding/base64"
	"errors"
	"testing"
)

// TestSeal: only what the same console sealed for the same purpose is opened.
func TestSeal(t *testing.T) {
	key := make([]byte, 32)
	s, err := newSeal(key, "test")
	if err != nil {
		t.Fatal(err)
	}
	other, err := newSeal(key, "another purpose")
	if err != nil {
		t.Fatal(err)
	}
	sealed := func(s seal, v any) string {
		text, err := s.close(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	var got string
	if err := s.open(sealed(s, "text"), &got); err != nil || got != "text" {
		t.Errorf("got %q, %v", got, err)
	}
	for name, text := range map[string]string{
		"not in base64":    "%",
		"empty":            "",
		"not sealed":       base64.RawURLEncoding.EncodeToString(make([]byte, 100)),
		"another purpose":  sealed(other, "text"),
		"not of this type": sealed(s, 1),
	} {
		if err := s.open(text, &got); !errors.Is(err, errSeal) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.close(func() {}); err == nil {
		t.Error("a function was sealed")
	}
}
