package postrider_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
)

func TestClassOf(t *testing.T) {
	cause := errors.New("cause")
	for _, c := range []struct {
		name string
		err  error
		want postrider.Class
		word string
	}{
		{"nil", nil, postrider.ClassUnknown, "unknown"},
		{"plain", cause, postrider.ClassUnknown, "unknown"},
		{"permanent", postrider.Permanent(cause), postrider.ClassPermanent, "permanent"},
		{"unavailable", postrider.Unavailable(cause), postrider.ClassUnavailable, "unavailable"},
		{"wrapped", fmt.Errorf("sending: %w", postrider.Permanent(cause)), postrider.ClassPermanent, "permanent"},
		{"joined", errors.Join(cause, postrider.Unavailable(cause)), postrider.ClassUnavailable, "unavailable"},
		{"marked again", postrider.Permanent(postrider.Unavailable(cause)), postrider.ClassPermanent, "permanent"},
	} {
		got := postrider.ClassOf(c.err)
		if got != c.want || got.String() != c.word {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if c.err != nil && !errors.Is(c.err, cause) {
			t.Errorf("%s: the cause is lost", c.name)
		}
	}
	if got := postrider.Permanent(cause).Error(); got != "cause" {
		t.Errorf("marking changed the text to %q", got)
	}
	if postrider.Permanent(nil) != nil || postrider.Unavailable(nil) != nil {
		t.Error("marking made an error of nil")
	}
	if err := postrider.Unavailable(context.Canceled); !errors.Is(err, context.Canceled) {
		t.Error("marking hides a cancelled context")
	}
}

func TestInvalidError(t *testing.T) {
	err := fmt.Errorf("enqueue: %w", &postrider.InvalidError{Field: "Type", Reason: "is empty"})
	if !errors.Is(err, postrider.ErrInvalid) || errors.Is(err, postrider.ErrUnsupported) {
		t.Errorf("%v does not match ErrInvalid alone", err)
	}
	if got, want := err.Error(), "enqueue: postrider: invalid message: Type is empty"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestRetryAfter(t *testing.T) {
	cause := errors.New("cause")
	err := fmt.Errorf("charge: %w", postrider.RetryAfter(cause, time.Minute))
	if postrider.ClassOf(err) != postrider.ClassUnavailable || retry.DelayOf(err) != time.Minute || !errors.Is(err, cause) || err.Error() != "charge: cause" {
		t.Errorf("%v: %v, %v", err, postrider.ClassOf(err), retry.DelayOf(err))
	}
	if err := postrider.NameUnavailable(err); postrider.ScopeOf(err) != postrider.ScopeName || retry.DelayOf(err) != time.Minute {
		t.Errorf("marked again: %v, %v", postrider.ScopeOf(err), retry.DelayOf(err))
	}
	if postrider.RetryAfter(nil, time.Minute) != nil || retry.DelayOf(cause) != 0 || retry.DelayOf(nil) != 0 {
		t.Error("a delay that nobody has asked for")
	}
}
