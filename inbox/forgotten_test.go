package inbox_test

import (
	"testing"
	"time"

	"github.com/postrider/postrider/inbox"
)

func TestForgotten(t *testing.T) {
	day := func(n int) time.Time { return time.Date(2026, 1, 1+n, 0, 0, 0, 0, time.UTC) }
	f := inbox.Forgotten{Began: day(100)}
	late := func(n int, want bool) {
		t.Helper()
		if got := f.Late(day(n)); got != want {
			t.Errorf("day %d: late is %v with %+v", n, got, f)
		}
	}
	for _, n := range []int{0, 99, 100, 101, 200} {
		late(n, false)
	}
	f.Note(day(105))
	f.Note(day(103))
	for n, want := range map[int]bool{0: false, 99: false, 100: true, 103: true, 105: true, 106: false} {
		late(n, want)
	}
	f.Note(day(30))
	for n, want := range map[int]bool{0: true, 30: true, 31: false, 99: false, 105: true, 106: false} {
		late(n, want)
	}
	f.Note(time.Time{})
	if f.Late(time.Time{}) {
		t.Error("an ID without a time is late")
	}
}
