package enqueue_test

import (
	"errors"
	"testing"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/enqueue"
)

func TestValidate(t *testing.T) {
	event := func(kind, id string) postrider.Message {
		return postrider.Event("t", postrider.Aggregate{Type: kind, ID: id}, nil)
	}
	twice := event("order", "1")
	keyed := event("order", "")
	keyed.Key = "k"
	for name, c := range map[string]struct {
		msgs []postrider.Message
		want string
	}{
		"none":                    {nil, ""},
		"two":                     {[]postrider.Message{event("order", "1"), event("order", "1")}, ""},
		"no aggregate":            {[]postrider.Message{event("", "")}, ""},
		"an aggregate of no type": {[]postrider.Message{event("", "1")}, ""},
		"a key of its own":        {[]postrider.Message{keyed}, ""},
		"IDs that the store sets": {[]postrider.Message{{Type: "t"}, {Type: "t"}}, ""},
		"no aggregate ID":         {[]postrider.Message{event("order", "1"), event("order", "")}, "AggregateID"},
		"one ID twice":            {[]postrider.Message{twice, event("order", "2"), twice}, "ID"},
		"one that is invalid":     {[]postrider.Message{event("order", "1"), {}}, "Type"},
	} {
		err := enqueue.Validate(c.msgs)
		var invalid *postrider.InvalidError
		if errors.As(err, &invalid); (err == nil) != (c.want == "") || err != nil && (invalid == nil || invalid.Field != c.want) {
			t.Errorf("%s: got %v, want an error about %q", name, err, c.want)
		}
	}
}
