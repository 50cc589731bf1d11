package nats

import (
	"errors"
	"testing"

	"github.com/postrider/postrider"
)

// TestOrderOverParts checks what may be sent of a later part of a call after a failure in an
// earlier one.
func TestOrderOverParts(t *testing.T) {
	t.Parallel()
	message := func(key string) postrider.Message { return postrider.Message{Key: key} }
	for _, c := range []struct {
		name string
		err  error
		want string // keys that may be sent
	}{
		{"nothing has failed", nil, "abc"},
		{"the message", postrider.Permanent(errors.New("too large")), "bc"},
		{"its name", postrider.NameUnavailable(errors.New("full")), "bc"},
		{"not tried", postrider.Unavailable(postrider.ErrNotTried), "bc"},
		{"unknown", errors.New("connection lost"), ""},
		{"the server", postrider.Unavailable(errors.New("no quorum")), ""},
	} {
		o := order{atomic: true}
		failed := message("a")
		o.note(&failed, c.err)
		later := []postrider.Message{message("a"), message("b"), message("c")}
		errs := make([]error, len(later))
		part, which := o.admit(later, errs)
		sent := ""
		for i := range part {
			sent += part[i].Key
			if later[which(i)].Key != part[i].Key {
				t.Errorf("%s: message %d is not where it was", c.name, i)
			}
		}
		if sent != c.want {
			t.Errorf("%s: sends %q, want %q", c.name, sent, c.want)
		}
		for i, err := range errs {
			if held := !errors.Is(err, postrider.ErrNotTried); held == (len(part) < 3 && (c.want == "" || later[i].Key == "a")) {
				t.Errorf("%s: message %s: got %v", c.name, later[i].Key, err)
			}
		}
	}
}
