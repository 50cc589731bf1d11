package phrase

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Undecodable returns an error of encoding/json without any content of the JSON except names of
// fields: such errors are stored, logged and shown to people who may not see the content of
// messages. errors.Is and errors.As still find the original error.
func Undecodable(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &kind):
		is, _, _ := strings.Cut(kind.Value, " ") // "number 12"
		field := ""
		if kind.Field != "" {
			field = " in field " + kind.Field
		}
		return undecodable{fmt.Sprintf("a JSON %s%s does not fit Go type %s", is, field, kind.Type), err}
	case errors.As(err, &syntax):
		return undecodable{fmt.Sprintf("invalid JSON at byte %d", syntax.Offset), err}
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return undecodable{"the JSON ends too early", err}
	case strings.HasPrefix(err.Error(), "json: unknown field "):
		return err
	}
	return undecodable{"a value does not fit its Go type", err} // the type's own UnmarshalJSON may have quoted the content
}

type undecodable struct {
	text string
	err  error
}

func (e undecodable) Error() string { return e.text }
func (e undecodable) Unwrap() error { return e.err }
