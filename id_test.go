package postrider_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider"
)

func TestNewIDIsVersion7(t *testing.T) {
	before := time.Now()
	id := postrider.NewID()
	if version, variant := id[6]>>4, id[8]>>6; version != 7 || variant != 2 {
		t.Errorf("%v has version %d and variant %b, want 7 and 10", id, version, variant)
	}
	// If many IDs are made at once, their clock runs ahead by microseconds.
	if made := id.Time(); made.Before(before.Add(-time.Millisecond)) || made.After(time.Now().Add(time.Second)) {
		t.Errorf("%v was made at %v, want about %v", id, made, before)
	}
	if got := (postrider.ID{6: 0x40}).Time(); !got.IsZero() {
		t.Errorf("the time of a version 4 ID is %v, want none", got)
	}
	if id.IsZero() || !(postrider.ID{}).IsZero() {
		t.Error("IsZero is wrong")
	}
}

func TestNewIDIncreases(t *testing.T) {
	const goroutines, each = 8, 2000
	var made [goroutines][]postrider.ID
	var running sync.WaitGroup
	for g := range made {
		running.Go(func() {
			for range each {
				made[g] = append(made[g], postrider.NewID())
			}
		})
	}
	running.Wait()
	seen := make(map[[8]byte]bool) // the IDs must differ without their random half
	for _, ids := range made {
		if !slices.IsSortedFunc(ids, func(a, b postrider.ID) int { return bytes.Compare(a[:], b[:]) }) {
			t.Error("the IDs of one goroutine are not in order")
		}
		for _, id := range ids {
			seen[[8]byte(id[:8])] = true
		}
	}
	if len(seen) != goroutines*each {
		t.Errorf("got %d different IDs, want %d", len(seen), goroutines*each)
	}
}

func TestNewIDWhenClockStepsBack(t *testing.T) {
	before := postrider.NewID()
	synctest.Test(t, func(t *testing.T) { // virtual time starts in the year 2000
		after := postrider.NewID()
		if bytes.Compare(before[:], after[:]) >= 0 {
			t.Errorf("%v follows %v", after, before)
		}
	})
}

func TestParseID(t *testing.T) {
	const text = "0190b5a2-7c3d-7e4f-8a5b-0123456789ab"
	id, err := postrider.ParseID(strings.ToUpper(text))
	if err != nil || id.String() != text {
		t.Errorf("got %v and %v, want %s", id, err, text)
	}
	for _, bad := range []string{
		"", text[1:], text + "0", "{" + text[1:35] + "}", strings.ReplaceAll(text, "-", ""),
		strings.Replace(text, "-", "_", 1), strings.Replace(text, "a", "g", 1),
	} {
		if id, err := postrider.ParseID(bad); err == nil || !id.IsZero() {
			t.Errorf("%q was read as %v, with error %v", bad, id, err)
		}
	}
}

func TestIDAsJSON(t *testing.T) {
	type envelope struct{ ID postrider.ID }
	want := envelope{postrider.NewID()}
	encoded, err := json.Marshal(want)
	if err != nil || string(encoded) != `{"ID":"`+want.ID.String()+`"}` {
		t.Fatalf("got %s and %v", encoded, err)
	}
	var got envelope
	if err := json.Unmarshal(encoded, &got); err != nil || got != want {
		t.Errorf("got %v and %v, want %v", got, err, want)
	}
	if err := json.Unmarshal([]byte(`{"ID":"x"}`), &got); err == nil || got != want {
		t.Errorf("a bad ID left %v and %v", got, err)
	}
}

func FuzzParseID(f *testing.F) {
	f.Add("0190b5a2-7c3d-7e4f-8a5b-0123456789ab")
	f.Add("FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF")
	f.Add("00000000-0000-0000-0000-00000000000é")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := postrider.ParseID(s)
		if err == nil && id.String() != strings.ToLower(s) {
			t.Errorf("%q was read as %v", s, id)
		}
		if back, err := postrider.ParseID(id.String()); err != nil || back != id {
			t.Errorf("%v was read back as %v, with error %v", id, back, err)
		}
	})
}
