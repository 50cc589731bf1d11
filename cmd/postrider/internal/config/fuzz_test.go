package config

import (
	"errors"
	"strings"
	"testing"
)

// FuzzParse holds that Parse neither fails nor hangs on any input, that its mistakes have places within the file, and that
// what it accepts can be used and shown.
func FuzzParse(f *testing.F) {
	f.Add(good)
	for _, text := range []string{
		"", "a: b", "feeds: [", "feeds: {a: {routes: [{types: '*', name: '{type'}]}}", "databases: &a {b: *a}",
		"databases: {a: {url: '${A:-${B}}'}}\ndestinations: {d: {url: 'stdout:'}}\nfeeds: {f: {relay: {lease: 1h}}}",
		"? [a]\n: b", "<<: {a: b}", "feeds:\n\t- x", "\xff", "%YAML 9.9\n---\n{}", "databases: !!binary aGk=",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "${file:") {
			return // not the fuzzer's files
		}
		file, err := Parse("f.yaml", []byte(text), lookup)
		if err != nil {
			var mistakes Mistakes
			if !errors.As(err, &mistakes) || len(mistakes) == 0 {
				t.Fatalf("%T: %v", err, err)
			}
			for i, m := range mistakes {
				if m.Message == "" || m.Line < 1 || m.Line > 2+strings.Count(strings.NewReplacer("\r", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text), "\n") {
					t.Errorf("%+v", m)
				}
				if i > 0 && m.Line < mistakes[i-1].Line {
					t.Errorf("%v stands behind %v", m, mistakes[i-1])
				}
			}
			return
		}
		if err := file.Validate(); err != nil {
			t.Errorf("accepted, and then: %v", err)
		}
		for name := range file.Feeds {
			if _, err := file.Feed(name); err != nil {
				t.Error(err)
			}
		}
		_ = file.Warnings()
		if _, err := file.Redacted().YAML(); err != nil {
			t.Error(err)
		}
	})
}
