// Package redact makes payloads and headers fit to be shown: it blacks out what rules name, and shows the rest as it was
// written. What rules cannot be applied to is not shown at all while there are rules.
package redact

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// Mask stands in the place of what has been blacked out. In JSON it is a string.
const Mask = "[redacted]"

const (
	maxText   = 256 << 10
	maxBinary = 4 << 10
)

// View is a payload as it is shown.
type View struct {
	Hidden    bool     `json:"hidden" doc:"The role may not see it: no text then"`
	Redacted  []string `json:"redacted" nullable:"false" doc:"Paths of what was blacked out, at most 100; $ is the whole"`
	Kind      string   `json:"kind" enum:"json,text,binary,empty"`
	Text      string   `json:"text,omitempty" doc:"json: indented, numbers and order of keys as they were written; binary: base64 of the first bytes"`
	Bytes     int      `json:"bytes" doc:"Of the payload as it is stored"`
	Truncated bool     `json:"truncated"`
}

// Rules are what nobody gets to see, whatever the role. They may be used by several goroutines.
type Rules struct{ paths []path }

// New returns the rules for JSON paths, such as "$.card.number", "$..password" or "$.items[*]['card no']". The errors of all
// paths come at once.
func New(paths []string) (*Rules, error) {
	rules := new(Rules)
	var errs []error
	for _, text := range paths {
		p, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("redact: path %q: %w", text, err))
			continue
		}
		rules.paths = append(rules.paths, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rules, nil
}

// Empty reports whether no path is hidden.
func (r *Rules) Empty() bool { return len(r.paths) == 0 }

// Payload returns a payload as it is shown to somebody who may see payloads, or may not.
func (r *Rules) Payload(contentType string, payload []byte, visible bool) View {
	view := View{Redacted: []string{}, Kind: kindOf(contentType, payload), Bytes: len(payload)}
	switch {
	case !visible:
		view.Hidden = true
	case view.Kind == "empty":
	case view.Kind == "json":
		r.showJSON(&view, payload)
	case len(r.paths) > 0:
		withhold(&view, "it is not JSON")
	default:
		showPlain(&view, payload)
	}
	return view
}

// showJSON shows what claims to be JSON. What is not JSON after all may still hold what the rules are about.
func (r *Rules) showJSON(view *View, payload []byte) {
	s := newScanner(payload, r.paths)
	switch err := s.run(); {
	case err == nil:
		view.Text, view.Truncated = s.out.text(), s.out.full
		view.Redacted = s.found
	case len(r.paths) > 0:
		withhold(view, err.Error())
	default:
		showPlain(view, payload)
	}
}

// withhold shows nothing but why.
func withhold(view *View, why string) {
	if view.Kind == "json" {
		view.Kind = "text"
	}
	view.Redacted = []string{"$"}
	if view.Kind == "text" {
		view.Text = "Not shown: rules say what is blacked out in JSON, and they cannot be applied here, because " + why + "."
	}
}

// showPlain shows what has no structure. Control characters stay: the page marks them, and they may be what is wrong.
func showPlain(view *View, payload []byte) {
	if !utf8.Valid(payload) {
		view.Kind = "binary"
		view.Truncated = len(payload) > maxBinary
		view.Text = base64.StdEncoding.EncodeToString(payload[:min(len(payload), maxBinary)])
		return
	}
	view.Kind = "text"
	view.Truncated = len(payload) > maxText
	view.Text = cut(payload, maxText)
}

// cut returns at most n bytes of valid UTF-8, and no half of a character.
func cut(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n])
}

// kindOf says what a payload is, as far as can be said without reading its structure. What looks like JSON is taken for it
// under any type, so that a wrong type is no way around the rules.
func kindOf(contentType string, payload []byte) string {
	switch {
	case len(payload) == 0:
		return "empty"
	case !utf8.Valid(payload):
		return "binary"
	case jsonType(contentType), looksJSON(payload):
		return "json"
	}
	return "text"
}

func jsonType(contentType string) bool {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = strings.ToLower(contentType)
	}
	return kind == "" || kind == "application/octet-stream" || strings.HasSuffix(kind, "/json") || strings.HasSuffix(kind, "+json")
}

func looksJSON(payload []byte) bool {
	for _, c := range payload {
		switch c {
		case ' ', '\t', '\r', '\n':
		case '{', '[':
			return true
		default:
			return false
		}
	}
	return false
}
