package phrase

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestUndecodable(t *testing.T) {
	type card struct {
		Number string    `json:"number"`
		Until  time.Time `json:"until"`
		Limit  int       `json:"limit,string"`
		Owner  struct {
			Age int `json:"age"`
		} `json:"owner"`
	}
	for text, want := range map[string]string{
		`{"number": 4111}`:           "a JSON number in field number does not fit Go type string",
		`{"owner": {"age": "4111"}}`: "a JSON string in field owner.age does not fit Go type int",
		`{"owner": {"age": 4111.5}}`: "a JSON number in field owner.age does not fit Go type int",
		`{"until": "4111"}`:          "a value does not fit its Go type",
		`{"limit": "4111x"}`:         "a JSON number in field limit does not fit Go type int",
		`["4111"]`:                   "a JSON array does not fit Go type phrase.card",
		`{"number": "4111" 4111}`:    "invalid JSON at byte 19",
		`{"number": "4111`:           "the JSON ends too early",
		``:                           "the JSON ends too early",
		`{"numbers": "4111"}`:        `json: unknown field "numbers"`,
	} {
		d := json.NewDecoder(bytes.NewReader([]byte(text)))
		d.DisallowUnknownFields()
		was := d.Decode(new(card))
		err := Undecodable(was)
		if err == nil || err.Error() != want || strings.Contains(err.Error(), "4111") || !errors.Is(err, was) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if Undecodable(nil) != nil {
		t.Error("no error became one")
	}
}
