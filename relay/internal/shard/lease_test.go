package shard

import (
	"testing"
	"time"
	"unsafe"
)

// TestLease: every call ends a tenth of the lease before the lease does, and no call begins with
// less than another tenth left for it.
func TestLease(t *testing.T) {
	renewed := time.Now()
	l := lease{length: 10 * time.Second, timeout: 3 * time.Second, renewed: renewed}
	for _, c := range []struct {
		age, until time.Duration // since the renewal; 0: no call may begin
	}{
		{0, 3 * time.Second},
		{5 * time.Second, 8 * time.Second},
		{7 * time.Second, 9 * time.Second},
		{8*time.Second - 1, 9 * time.Second},
		{8 * time.Second, 0},
		{9 * time.Second, 0},
		{time.Hour, 0},
	} {
		deadline, ok := l.safeUntil(renewed.Add(c.age))
		if ok != (c.until > 0) || ok && !deadline.Equal(renewed.Add(c.until)) {
			t.Errorf("%v after the renewal: until %v, %v; want %v", c.age, deadline.Sub(renewed), ok, c.until)
		}
	}
	if _, ok := (&lease{length: 10 * time.Second, timeout: time.Second}).safeUntil(renewed); ok {
		t.Error("a lease that was never renewed allows to send")
	}
}

// TestLeaseAfterSleep: the monotonic clock stops while the machine is suspended, and the wall clock
// can be set back. Neither extends a lease.
func TestLeaseAfterSleep(t *testing.T) {
	renewed := time.Now()
	l := lease{length: 10 * time.Second, timeout: time.Second, renewed: renewed}
	awake := setWall(renewed, time.Minute)
	if awake.Sub(renewed) != 0 || awake.Round(0).Sub(renewed.Round(0)) != time.Minute {
		t.Fatal("setWall does not work with this version of Go")
	}
	if _, ok := l.safeUntil(awake); ok {
		t.Error("after a minute of sleep the lease still holds")
	}
	if _, ok := l.safeUntil(setWall(renewed.Add(time.Minute), -time.Hour)); ok {
		t.Error("after a minute the lease still holds because the clock was set back")
	}
}

// setWall sets the wall clock reading of a time that has both readings and keeps the monotonic one:
// seconds are bits 30 to 62 of its first word.
func setWall(at time.Time, by time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&at)) += uint64(by/time.Second) << 30
	return at
}
