package idempotency_test

import (
	"bytes"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/postrider/postrider/idempotency"
)

func TestParseKey(t *testing.T) {
	for value, want := range map[string]string{
		`"8e03978e-40d5-43e8-bc93-6894a57f9324"`: "8e03978e-40d5-43e8-bc93-6894a57f9324",
		`8e03978e-40d5-43e8-bc93-6894a57f9324`:   "8e03978e-40d5-43e8-bc93-6894a57f9324",
		" \t\"k\" ":                              "k",
		`"a b"`:                                  "a b",
		`"a, b; c"`:                              "a, b; c",
		`"a\"b\\c"`:                              `a"b\c`,
		`a:b/c+d=`:                               "a:b/c+d=",
		``:                                       "",
		`""`:                                     "",
		`"`:                                      "",
		`"a`:                                     "",
		`"a\`:                                    "",
		`"a\b"`:                                  "",
		`"a"b`:                                   "",
		`"a";p=1`:                                "",
		`"a", "b"`:                               "",
		`a, b`:                                   "",
		`a;b`:                                    "",
		`a b`:                                    "",
		`a"b`:                                    "",
		`a\b`:                                    "",
		"\"a\x00\"":                              "",
		"\"é\"":                                  "",
		"é":                                      "",
		"a\x7f":                                  "",
	} {
		key, err := idempotency.ParseKey(value)
		if key != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", value, key, err, want)
		}
	}
}

func FuzzParseKey(f *testing.F) {
	for _, seed := range []string{`"a\"b"`, "abc", `"`, `""`, `"a";q`, " \"x\"\t"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		key, err := idempotency.ParseKey(value)
		if err != nil {
			if key != "" {
				t.Errorf("%q and %v", key, err)
			}
			return
		}
		if key == "" || len(key) > len(value) || strings.IndexFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 {
			t.Errorf("%q is accepted as %q", value, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := idempotency.ParseKey(quoted); again != key || err != nil {
			t.Errorf("%q is %q when quoted, %v", key, again, err)
		}
	})
}

func FuzzAnswer(f *testing.F) {
	data, _ := idempotency.Answer{Status: 201, Header: http.Header{"A": {"1", ""}, "B": {}}, Body: []byte("x")}.MarshalBinary()
	f.Add(data)
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, data []byte) {
		var a, b idempotency.Answer
		if a.UnmarshalBinary(data) != nil {
			return
		}
		again, err := a.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.UnmarshalBinary(again); err != nil || !reflect.DeepEqual(a, b) {
			t.Errorf("%+v becomes %+v, %v", a, b, err)
		}
		if third, _ := b.MarshalBinary(); !bytes.Equal(again, third) {
			t.Error("equal answers are encoded in two ways")
		}
	})
}
