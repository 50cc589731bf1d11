package schema

import (
	"bytes"
	"encoding/hex"
	"strings"
	"testing"
)

// TestIndexes compares with Confluent's documentation and the output of its clients: counts and
// positions are zigzag varints.
func TestIndexes(t *testing.T) {
	for _, c := range []struct {
		path []int
		want string
	}{
		{[]int{0}, "00"},
		{[]int{1}, "0202"},
		{[]int{1, 0}, "040200"},
		{[]int{0, 0}, "040000"},
		{[]int{70, 3}, "048c0106"},
	} {
		got := appendIndexes(nil, c.path)
		if hex.EncodeToString(got) != c.want {
			t.Errorf("%v: got %x, want %s", c.path, got, c.want)
		}
		if rest, err := cutIndexes(append(got, "rest"...)); err != nil || string(rest) != "rest" {
			t.Errorf("%v: read back: %q, %v", c.path, rest, err)
		}
	}
	// The long form of the first message is valid too.
	if rest, err := cutIndexes([]byte("\x02\x00rest")); err != nil || string(rest) != "rest" {
		t.Errorf("long form: %q, %v", rest, err)
	}
}

func TestHeader(t *testing.T) {
	got := appendHeader(nil, 0x01020304)
	if want := []byte{0, 1, 2, 3, 4}; !bytes.Equal(got, want) {
		t.Errorf("got %x, want %x", got, want)
	}
	id, rest, err := cutHeader(append(got, 'x'))
	if id != 0x01020304 || string(rest) != "x" || err != nil {
		t.Errorf("read back: %x, %q, %v", id, rest, err)
	}
	for payload, want := range map[string]string{"": "0 bytes", "\x00\x00\x00\x01": "4 bytes", "{\"id\":1}": "0x7b", "\x01\x00\x00\x00\x01x": "0x1"} {
		if _, _, err := cutHeader([]byte(payload)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", payload, err, want)
		}
	}
}

// FuzzFrame checks that no payload makes the reader panic or return more bytes than it was given.
func FuzzFrame(f *testing.F) {
	for _, s := range []string{"", "\x00", "\x00\x00\x00\x00\x01\x00", "\x00\x00\x00\x00\x01\x04\x02\x00x", "\x00\x00\x00\x00\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		"\x00\x00\x00\x00\x01\x01"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		_, rest, err := cutHeader(payload)
		if err != nil {
			return
		}
		if rest, err = cutIndexes(rest); err == nil && !bytes.HasSuffix(payload, rest) {
			t.Errorf("%x: %x is not its end", payload, rest)
		}
	})
}
