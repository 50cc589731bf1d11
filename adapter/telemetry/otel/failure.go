package otel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/postrider/postrider"
)

// maxText limits the size of an error text in a span.
const maxText = 512

// fail marks a span as failed.
func (o *Observer) fail(span trace.Span, err error, kind attribute.KeyValue) {
	if !span.IsRecording() {
		return
	}
	text := ""
	if o.cfg.ErrorText {
		text = err.Error()
		text = strings.ToValidUTF8(text[:min(len(text), maxText)], "")
	}
	span.SetStatus(codes.Error, text)
	span.SetAttributes(kind)
}

// class returns the kind of an error that a publisher returned.
func class(err error) attribute.KeyValue {
	return attrErrorType.String(postrider.ClassOf(err).String())
}

// kind returns the kind of any other error: a well-known word, or the type of the innermost error.
func kind(err error) attribute.KeyValue {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return attrErrorType.String("timeout")
	case errors.Is(err, context.Canceled):
		return attrErrorType.String("canceled")
	case errors.Is(err, postrider.ErrInvalid):
		return attrErrorType.String("invalid")
	case postrider.ClassOf(err) != postrider.ClassUnknown:
		return class(err)
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	name := fmt.Sprintf("%T", err)
	if name == "*errors.errorString" || name == "*errors.joinError" || name == "*fmt.wrapErrors" {
		name = "_OTHER" // the conventions' value for errors without a kind
	}
	return attrErrorType.String(name)
}
