package live

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/postrider/postrider"
)

// TestMeter measures messages of known age.
func TestMeter(t *testing.T) {
	var m Meter
	msgs := make([]postrider.Message, 100)
	now := time.UnixMilli(1_800_000_000_000)
	for i := range msgs {
		msgs[i].ID = postrider.NewID()
		made := uint64(now.Add(-time.Duration(i+1) * 10 * time.Millisecond).UnixMilli())
		for b := range 6 {
			msgs[i].ID[b] = byte(made >> (40 - 8*b))
		}
	}
	m.note(now, msgs, nil)
	errs := make([]error, 100)
	errs[3] = errors.New("no")
	m.note(now.Add(3*time.Second), msgs[:4], errs[:4])
	l := m.Between(now.Unix()-1, now.Unix())
	for _, p := range []struct {
		name string
		got  Value
		want float64
	}{{"p50", l.P50, 0.5}, {"p95", l.P95, 0.95}, {"p99", l.P99, 0.99}} {
		if math.Abs(float64(p.got)-p.want) > p.want/8 {
			t.Errorf("%s is %v, want about %v", p.name, p.got, p.want)
		}
	}
	if l.Count != 100 || l.Failed != 0 {
		t.Errorf("%+v", l)
	}
	if l := m.Between(now.Unix(), now.Unix()+3); l.Count != 3 || l.Failed != 1 {
		t.Errorf("later: %+v", l)
	}
	if l := m.Between(now.Unix()+3, now.Unix()+60); l.Count != 0 || l.P50.Known() {
		t.Errorf("nothing: %+v", l)
	}
	m.note(now.Add(slots*time.Second), msgs[:1], nil) // the slot is used again
	if l := m.Between(now.Unix()-1, now.Unix()); l.Count != 0 {
		t.Errorf("a second that is forgotten: %+v", l)
	}
	if n := testing.AllocsPerRun(10, func() { m.note(now, msgs, nil) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestBuckets holds every bucket to the times that it stands for.
func TestBuckets(t *testing.T) {
	for ms := int64(0); ms < 1<<22; ms = ms*21/20 + 1 {
		if got := middle(bucket(ms)) * 1000; math.Abs(got-float64(ms)) > 1+float64(ms)/8 {
			t.Fatalf("%d ms stands as %v", ms, got)
		}
	}
	if bucket(-5) != 0 || bucket(1<<40) != buckets-1 {
		t.Error("what is out of range falls out")
	}
}
