// Package redact prepares payloads and headers for display. It masks what the rules name, and
// leaves everything else unchanged. If there are rules, it hides a payload that they cannot be
// applied to.
package redact

import (
	"encoding/base64"
	"errors"
	"fmt"
	"mime"
	"strings"
	"unicode/utf8"
)

// Mask replaces redacted values. In JSON it is a string.
const Mask = "[redacted]"

const (
	maxText   = 256 << 10
	maxBinary = 4 << 10
)

// View is a payload for display.
type View struct {
	Hidden    bool     `json:"hidden" doc:"The role may not see it: no text then"`
	Redacted  []string `json:"redacted" nullable:"false" doc:"Paths of what was blacked out, at most 100; $ is the whole"`
	Kind      string   `json:"kind" enum:"json,text,binary,empty"`
	Text      string   `json:"text,omitempty" doc:"json: indented, numbers and order of keys as they were written; binary: base64 of the first bytes"`
	Bytes     int      `json:"bytes" doc:"Of the payload as it is stored"`
	Truncated bool     `json:"truncated"`
}

// Rules define what is hidden from every role. They are safe for concurrent use.
type Rules struct{ paths []path }

// New returns the rules for JSON paths, such as "$.card.number", "$..password" or "$.items[*]['card
// no']". It joins the errors of all paths.
func New(paths []string) (*Rules, error) {
	rules := new(Rules)
	var errs []error
	for _, text := range paths {
		p, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("redact: path %q: %w", text, err))
		}
		rules.paths = append(rules.paths, p)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return rules, nil
}

// Empty reports whether there are no rules.
func (r *Rules) Empty() bool { return len(r.paths) == 0 }

// Payload returns the view of a payload. If visible is false, it is hidden.
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

// showJSON shows a payload that should be JSON. If it turns out to be invalid, it is withheld if
// there are rules.
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

// withhold shows only the reason.
func withhold(view *View, why string) {
	if view.Kind == "json" {
		view.Kind = "text"
	}
	view.Redacted = []string{"$"}
	if view.Kind == "text" {
		view.Text = "Not shown: the redaction rules for JSON cannot be applied, because " + why + "."
	}
}

// showPlain shows a payload without structure. It keeps control characters, which the page marks:
// they may be the problem.
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

// cut returns at most n bytes of valid UTF-8, without a partial character.
func cut(b []byte, n int) string {
	if len(b) <= n {
		return string(b)
	}
	for n > 0 && !utf8.RuneStart(b[n]) {
		n--
	}
	return string(b[:n])
}

// kindOf returns the kind of a payload, without parsing it. What looks like JSON counts as JSON
// with any content type, so that a wrong type does not bypass the rules.
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
