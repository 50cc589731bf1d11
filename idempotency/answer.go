package idempotency

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// ErrTooLarge means that an answer is larger than [Config.MaxAnswer] and cannot be stored.
var ErrTooLarge = errors.New("idempotency: the answer is too large to be stored")

// Answer is a response that can be stored and replayed.
type Answer struct {
	Status int // 200 to 599; 0 is 200
	Header http.Header
	Body   []byte
}

// JSON returns an answer with v as its body.
func JSON(status int, v any) (Answer, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return Answer{}, fmt.Errorf("idempotency: answer: %w", err)
	}
	return Answer{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

// With returns the answer with one more header field, such as Location.
func (a Answer) With(name, value string) Answer {
	a.Header = a.Header.Clone()
	if a.Header == nil {
		a.Header = make(http.Header)
	}
	a.Header.Set(name, value)
	return a
}

// Send writes the answer as the response to a request.
func (a Answer) Send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.Header)
	w.Header().Del("Content-Length") // the handler may have set it for another body
	w.WriteHeader(a.status())
	if len(a.Body) > 0 {
		_, _ = w.Write(a.Body) // on failure the client is gone and will retry
	}
}

func (a Answer) status() int {
	if a.Status == 0 {
		return http.StatusOK
	}
	return a.Status
}

func (a Answer) validate(limit int) error {
	switch s := a.status(); {
	case s < 200 || s > 599:
		return fmt.Errorf("idempotency: an answer with status %d: want 200 to 599", a.Status)
	case !hasBody(s) && len(a.Body) > 0:
		return fmt.Errorf("idempotency: an answer with status %d has no body, and this one has %d bytes", s, len(a.Body))
	case len(a.Body) > limit:
		return fmt.Errorf("%w: %d bytes, and MaxAnswer is %d", ErrTooLarge, len(a.Body), limit)
	}
	return nil
}

func hasBody(status int) bool {
	return status != http.StatusNoContent && status != http.StatusNotModified
}

// keeping returns the answer to store: only the header fields on the allow-list.
func (a Answer) keeping(fields []string) Answer {
	kept := make(http.Header)
	for name, values := range a.Header {
		if name = http.CanonicalHeaderKey(name); slices.Contains(fields, name) {
			kept[name] = values
		}
	}
	return Answer{Status: a.status(), Header: kept, Body: a.Body}
}

// answerFormat is the first byte of an encoded answer.
const answerFormat = 1

var errAnswerFormat = errors.New("idempotency: not an encoded answer")

// MarshalBinary encodes the answer for a store. Header values need not be valid text. Equal answers
// have equal encodings.
func (a Answer) MarshalBinary() ([]byte, error) {
	out := []byte{answerFormat}
	out = binary.AppendUvarint(out, uint64(a.status()))
	text := func(s string) {
		out = binary.AppendUvarint(out, uint64(len(s)))
		out = append(out, s...)
	}
	out = binary.AppendUvarint(out, uint64(len(a.Header)))
	for _, name := range slices.Sorted(maps.Keys(a.Header)) {
		text(name)
		out = binary.AppendUvarint(out, uint64(len(a.Header[name])))
		for _, value := range a.Header[name] {
			text(value)
		}
	}
	return append(out, a.Body...), nil
}

// UnmarshalBinary decodes the result of MarshalBinary.
func (a *Answer) UnmarshalBinary(data []byte) error {
	if len(data) == 0 || data[0] != answerFormat {
		return errAnswerFormat
	}
	d := decoder{rest: data[1:]}
	status := d.number(599)
	header := make(http.Header)
	for range d.number(len(d.rest)) {
		name := d.text()
		values := make([]string, 0, 1)
		for range d.number(len(d.rest)) {
			values = append(values, d.text())
		}
		header[name] = values
	}
	if d.bad || status < 200 {
		return errAnswerFormat
	}
	*a = Answer{Status: status, Header: header, Body: slices.Clone(d.rest)}
	return nil
}

// decoder decodes an answer. After an error it returns zeros.
type decoder struct {
	rest []byte
	bad  bool
}

func (d *decoder) number(limit int) int {
	n, size := binary.Uvarint(d.rest)
	if d.bad || size <= 0 || n > uint64(limit) {
		d.bad = true
		return 0
	}
	d.rest = d.rest[size:]
	return int(n)
}

func (d *decoder) text() string {
	n := d.number(len(d.rest))
	if n > len(d.rest) {
		d.bad = true
		return ""
	}
	s := string(d.rest[:n])
	d.rest = d.rest[n:]
	return s
}
