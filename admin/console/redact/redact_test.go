package redact

import (
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func rules(t *testing.T, paths ...string) *Rules {
	t.Helper()
	r, err := New(paths)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func compact(s string) string { return strings.NewReplacer("\n", "", " ", "").Replace(s) }

func TestBlackedOut(t *testing.T) {
	const m = `"[redacted]"`
	tests := []struct {
		name, path, in, want string
	}{
		{"member", "$.a.b", `{"a":{"b":1,"c":2},"b":3}`, `{"a":{"b":` + m + `,"c":2},"b":3}`},
		{"whole object", "$.a", `{"a":{"b":[1,{}]}}`, `{"a":` + m + `}`},
		{"anywhere", "$..password", `{"password":1,"x":[{"password":{"y":2}}]}`, `{"password":` + m + `,"x":[{"password":` + m + `}]}`},
		{"anywhere below", "$.x..p", `{"p":1,"x":{"p":2,"y":{"p":3}}}`, `{"p":1,"x":{"p":` + m + `,"y":{"p":` + m + `}}}`},
		{"each item", "$.items[*].card", `{"items":[{"card":"4"},{"card":"5"}]}`, `{"items":[{"card":` + m + `},{"card":` + m + `}]}`},
		{"index", "$[1]", `[1,2,3]`, `[1,` + m + `,3]`},
		{"index is no name", "$[1]", `{"1":2}`, `{"1":2}`},
		{"name is no index", "$['1']", `[1,2]`, `[1,2]`},
		{"quoted", `$['ab']["c'd"]`, `{"ab":{"c'd":1}}`, `{"ab":{"c'd":` + m + `}}`},
		{"escaped quote", `$['c\'d']`, `{"c'd":1}`, `{"c'd":` + m + `}`},
		{"all", "$.*", `{"a":1,"b":[2]}`, `{"a":` + m + `,"b":` + m + `}`},
		{"all anywhere", "$..*", `[1,[2]]`, `[` + m + `,` + m + `]`},
		{"index anywhere", "$..[0]", `{"a":[1,2],"b":[[3],4]}`, `{"a":[` + m + `,2],"b":[` + m + `,4]}`},
		{"twice anywhere", "$..a..a", `{"a":{"a":{"a":1}}}`, `{"a":{"a":` + m + `}}`},
		{"escapes hide no name", "$.password", `{"p\u0061ssword":1}`, `{"p\u0061ssword":` + m + `}`},
		{"case hides no name", "$.password", `{"PassWord":1}`, `{"PassWord":` + m + `}`},
		{"duplicate keys", "$.a", `{"a":1,"b":2,"a":3}`, `{"a":` + m + `,"b":2,"a":` + m + `}`},
		{"root", "$", `{"a":1}`, m},
		{"name with a hyphen", "$.card-no", `{"card-no":1}`, `{"card-no":` + m + `}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := rules(t, tt.path, "$.absent").Payload("application/json", []byte(tt.in), true)
			if got := compact(view.Text); got != tt.want {
				t.Errorf("%s\n got %s\nwant %s", tt.in, got, tt.want)
			}
			if len(view.Redacted) != strings.Count(tt.want, Mask) {
				t.Errorf("redacted: %q", view.Redacted)
			}
		})
	}
}

// The places are named that were blacked out, but nothing inside of them.
func TestPlaces(t *testing.T) {
	in := `{"a":{"secret key":1},"items":[{"x":1},{"card no":2,"\u202ecard":3}],"b":{"c":4}}`
	view := rules(t, "$.a", "$..*['secret key']", "$.items[1].*", "$.b.c").Payload("", []byte(in), true)
	want := []string{"$.a", `$.items[1]["card no"]`, `$.items[1]["\u202ecard"]`, "$.b.c"}
	if !slices.Equal(view.Redacted, want) {
		t.Errorf("got %q\nwant %q", view.Redacted, want)
	}
	long := `{"` + strings.Repeat("é", 1000) + `":[` + strings.Repeat("1,", 1000) + `1]}`
	view = rules(t, "$..[*]").Payload("", []byte(long), true)
	if len(view.Redacted) != 1 || len(view.Redacted[0]) > 210 {
		t.Errorf("a long name: %q", view.Redacted)
	}
	view = rules(t, "$.*[*]").Payload("", []byte(long), true)
	if len(view.Redacted) != 100 || len(view.Redacted[0]) > 210 || strings.Count(view.Text, Mask) != 1001 {
		t.Errorf("%d places named, %d blacked out", len(view.Redacted), strings.Count(view.Text, Mask))
	}
}

func TestAsWritten(t *testing.T) {
	const in = `{"z":1e400,"a":12345678901234567890,"p":1.10,"e":[],"o":{},"s":"\u00e9\/<b>","n":null,"l":[true,-0]}`
	const want = `{
  "z": 1e400,
  "a": 12345678901234567890,
  "p": 1.10,
  "e": [],
  "o": {},
  "s": "\u00e9\/<b>",
  "n": null,
  "l": [
    true,
    -0
  ]
}`
	view := rules(t).Payload("application/vnd.x+json; charset=utf-8", []byte(in), true)
	if view.Text != want || view.Kind != "json" || view.Bytes != len(in) || view.Truncated || view.Redacted == nil {
		t.Errorf("got %+v", view)
	}
}

// What the rules cannot be applied to is not shown while there are any.
func TestWithheld(t *testing.T) {
	const secret = "s3cr3t"
	tests := []struct{ name, contentType, in, kind string }{
		{"cut short", "application/json", `{"password":"` + secret + `"`, "text"},
		{"cut short in a number", "application/json", `{"password":"` + secret + `","n":1`, "text"},
		{"trailing", "application/json", `{"password":"` + secret + `"} x`, "text"},
		{"comment", "application/json", `{/*` + secret + `*/}`, "text"},
		{"text", "text/plain", "password=" + secret, "text"},
		{"one byte that is not UTF-8", "application/json", `{"password":"` + secret + "\xff\"}", "binary"},
		{"too deep", "application/json", strings.Repeat("[", 600) + `"` + secret + `"` + strings.Repeat("]", 600), "text"},
		{"byte order mark", "application/json", "\ufeff" + `{"password":"` + secret + `"}`, "text"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			view := rules(t, "$..password").Payload(tt.contentType, []byte(tt.in), true)
			if strings.Contains(view.Text, secret) || strings.Contains(view.Text, base64.StdEncoding.EncodeToString([]byte(tt.in))) {
				t.Errorf("shown: %q", view.Text)
			}
			if view.Kind != tt.kind || !slices.Equal(view.Redacted, []string{"$"}) {
				t.Errorf("got %+v", view)
			}
			if open := rules(t).Payload(tt.contentType, []byte(tt.in), true); open.Text == "" || len(open.Redacted) > 0 || open.Kind != tt.kind {
				t.Errorf("without rules: %+v", open)
			}
		})
	}
}

// A wrong type is no way around the rules.
func TestJSONUnderAnotherType(t *testing.T) {
	for _, contentType := range []string{"", "text/plain", "application/octet-stream", "application/x-protobuf", ";;"} {
		view := rules(t, "$.a").Payload(contentType, []byte(` {"a":"s3cr3t"}`), true)
		if view.Kind != "json" || strings.Contains(view.Text, "s3cr3t") {
			t.Errorf("%q: %+v", contentType, view)
		}
	}
}

func TestHiddenAndEmpty(t *testing.T) {
	view := rules(t).Payload("application/json", []byte(`{"a":1}`), false)
	if !view.Hidden || view.Text != "" || view.Bytes != 7 || view.Kind != "json" {
		t.Errorf("hidden: %+v", view)
	}
	if view := rules(t, "$.a").Payload("application/json", nil, true); view.Kind != "empty" || view.Hidden || view.Text != "" {
		t.Errorf("empty: %+v", view)
	}
}

func TestTruncated(t *testing.T) {
	long := `{"a":"` + strings.Repeat("é", maxText) + `","password":"s3cr3t"}`
	view := rules(t, "$.password").Payload("application/json", []byte(long), true)
	if !view.Truncated || len(view.Text) > maxText || len(view.Text) < maxText-4 || !utf8.ValidString(view.Text) {
		t.Errorf("%d bytes, truncated: %t", len(view.Text), view.Truncated)
	}
	if !slices.Equal(view.Redacted, []string{"$.password"}) {
		t.Errorf("redacted: %q; rules are applied to what comes after the cut too", view.Redacted)
	}
	view = rules(t, "$.password").Payload("application/json", []byte(long+"x"), true)
	if len(view.Text) > 1000 {
		t.Error("the beginning of invalid JSON is shown, when the mistake comes after the cut")
	}
	view = rules(t).Payload("text/plain", []byte(long[6:]), true)
	if view.Kind != "text" || !view.Truncated || len(view.Text) > maxText {
		t.Errorf("text: %d bytes, truncated: %t", len(view.Text), view.Truncated)
	}
	view = rules(t).Payload("", []byte(strings.Repeat("\xff", 5000)), true)
	if raw, err := base64.StdEncoding.DecodeString(view.Text); err != nil || len(raw) != 4096 || !view.Truncated || view.Kind != "binary" {
		t.Errorf("binary: %d bytes, %v, truncated: %t", len(raw), err, view.Truncated)
	}
}

func TestHeaders(t *testing.T) {
	in := map[string]string{
		"Authorization": "s3cr3t", "x-api-key": "s3cr3t", "X_API_KEY": "s3cr3t", "Set-Cookie": "s3cr3t", "csrfToken": "s3cr3t",
		"client.secret": "s3cr3t", "db-password": "s3cr3t", "Proxy-Authorization": "s3cr3t", "traceparent": "00-1",
	}
	for name, value := range rules(t).Headers(in, true) {
		if (value == Mask) == (name == "traceparent") || strings.Contains(value, "s3cr3t") {
			t.Errorf("%s: %s", name, value)
		}
	}
	if got := rules(t).Headers(in, false)["traceparent"]; got != Hidden {
		t.Errorf("to those who may not see values: %q", got)
	}
}

func TestPathErrors(t *testing.T) {
	tests := []struct{ path, want string }{
		{"", "at character 1: a path begins with $"},
		{"a.b", "at character 1"},
		{"$a", "at character 2: want . or ["},
		{"$.", "at character 3: want a name"},
		{"$.a b", "at character 4: want . or ["},
		{"$...a", "at character 4: want a name"},
		{"$[", "at character 3: want an index"},
		{"$[-1]", "at character 3: want an index"},
		{"$[1:2]", "at character 4: want ]"},
		{"$['a','b']", "at character 6: want ]"},
		{"$['a", "at character 5: the name does not end"},
		{`$['a\n']`, "at character 5: after \\"},
		{"$[99999999999]", "too large"},
		{"$[?(@.a)]", "at character 3"},
		{"$.é(", "at character 4"},
		{"$" + strings.Repeat(".a", 1000), "longer than"},
		{"$.\xff", "not UTF-8"},
	}
	var all []string
	for _, tt := range tests {
		all = append(all, tt.path)
		if _, err := New([]string{tt.path}); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v; want %q", tt.path, err, tt.want)
		}
	}
	if _, err := New(all); err == nil || strings.Count(err.Error(), "\n") != len(all)-1 {
		t.Errorf("not all at once: %v", err)
	}
}
