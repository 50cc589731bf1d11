package retry_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/retry"
)

const (
	s = time.Second
	m = time.Minute
)

// almostOne is the largest float64 below 1.
var almostOne = math.Nextafter(1, 0)

func TestPauses(t *testing.T) {
	for _, c := range []struct {
		policy retry.Policy
		want   []time.Duration
		random []time.Duration // with the maximum random part
	}{
		{retry.Policy{First: s, Most: 6 * s}, []time.Duration{s, 2 * s, 4 * s, 6 * s, 6 * s}, []time.Duration{3 * s / 2, 3 * s, 6 * s, 6 * s, 6 * s}},
		{retry.Policy{First: s, Most: s}, []time.Duration{s, s}, []time.Duration{s, s}},
		{retry.Policy{Pauses: []time.Duration{2 * s, 4 * s, 8 * s}}, []time.Duration{2 * s, 4 * s, 8 * s, 8 * s}, []time.Duration{2 * s, 4 * s, 8 * s, 8 * s}},
		{retry.Policy{Pauses: []time.Duration{m, s}}, []time.Duration{m, s, s}, []time.Duration{m, s, s}},
	} {
		for n, want := range c.want {
			if got := c.policy.Pause(n+1, 0); got != want {
				t.Errorf("%+v: pause %d is %v, want %v", c.policy, n+1, got, want)
			}
			if got := c.policy.Pause(n+1, almostOne); (got - c.random[n]).Abs() > time.Microsecond {
				t.Errorf("%+v: pause %d is at most %v, want %v", c.policy, n+1, got, c.random[n])
			}
		}
	}
	if got := (retry.Policy{First: s, Most: m}).Pause(0, 0); got != s {
		t.Errorf("before any failure: %v", got)
	}
}

// TestBound: no backoff exceeds the bounds, for any number of attempts and any random value.
func TestBound(t *testing.T) {
	p := retry.Policy{First: 3, Most: math.MaxInt64}
	for n := range 2000 {
		for _, random := range []float64{0, 0.5, almostOne} {
			for _, q := range []retry.Policy{p, {First: s, Most: 10 * m}, {First: 700 * time.Millisecond, Most: s}} {
				if d := q.Pause(n, random); d < q.First || d > q.Most {
					t.Fatalf("%+v: pause %d is %v", q, n, d)
				}
				if d := q.Grow(time.Duration(n)*s, random); d < q.First || d > q.Most {
					t.Fatalf("%+v: after %d s: %v", q, n, d)
				}
			}
		}
	}
}

func TestGrow(t *testing.T) {
	for _, p := range []retry.Policy{{First: s, Most: 8 * s}, {Pauses: []time.Duration{s, 2 * s, 4 * s, 8 * s}}} {
		var waited time.Duration
		var got []time.Duration
		for range 6 {
			d := p.Grow(waited, 0)
			got = append(got, d)
			waited += d
		}
		for n, want := range []time.Duration{s, s, 2 * s, 4 * s, 8 * s, 8 * s} {
			if got[n] != want {
				t.Errorf("%+v: %v", p, got)
				break
			}
		}
	}
}

func TestOr(t *testing.T) {
	def := retry.Policy{First: s, Most: m, Attempts: 5}
	for _, c := range []struct{ policy, want retry.Policy }{
		{retry.Policy{}, def},
		{retry.Policy{Attempts: 1}, retry.Policy{First: s, Most: m, Attempts: 1}},
		{retry.Policy{Attempts: retry.Forever}, retry.Policy{First: s, Most: m, Attempts: retry.Forever}},
		{retry.Policy{First: time.Hour}, retry.Policy{First: time.Hour, Most: time.Hour, Attempts: 5}},
		{retry.Policy{Most: 10}, retry.Policy{First: 10, Most: 10, Attempts: 5}},
		{retry.Policy{MaxAge: m}, retry.Policy{First: s, Most: m, Attempts: 5, MaxAge: m}},
	} {
		if got := c.policy.Or(def); got.First != c.want.First || got.Most != c.want.Most || got.Attempts != c.want.Attempts || got.MaxAge != c.want.MaxAge {
			t.Errorf("%+v: got %+v, want %+v", c.policy, got, c.want)
		}
	}
	list := retry.Policy{Pauses: []time.Duration{s, m}}.Or(def)
	if list.First != 0 || list.Most != 0 || list.Attempts != 3 || list.Validate() != nil {
		t.Errorf("got %+v, %v", list, list.Validate())
	}
	list.Attempts = 9
	if list = list.Or(def); list.Attempts != 9 {
		t.Errorf("got %+v", list)
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []retry.Policy{
		{}, {First: s}, {First: s, Most: s}, {Attempts: retry.Forever}, {Pauses: []time.Duration{s}, Attempts: 7, MaxAge: m},
		{Pauses: slices.Repeat([]time.Duration{s}, 100)},
	} {
		if err := p.Validate(); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	err := retry.Policy{First: -1, Most: -2, MaxAge: -3, Attempts: -4, Pauses: append(make([]time.Duration, 100), s)}.Validate()
	for _, want := range []string{"First is negative", "Most is negative", "MaxAge is negative", "Attempts is -4", "contradicts", "101 elements", "has 0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if err := (retry.Policy{First: m, Most: s}).Validate(); err == nil || !strings.Contains(err.Error(), "First (1m0s) is longer than Most (1s)") {
		t.Errorf("got %v", err)
	}
	err = retry.Policy{First: -1, Attempts: 3, MaxAge: m}.ValidateForever()
	for _, want := range []string{"First is negative", "Attempts is 3", "MaxAge is 1m0s"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

func TestDecide(t *testing.T) {
	cause := errors.New("cause")
	p := retry.Policy{First: s, Most: m, Attempts: 3, MaxAge: time.Hour}
	for _, c := range []struct {
		name    string
		failure retry.Failure
		want    retry.Decision
	}{
		{"first", retry.Failure{Err: cause}, retry.Decision{Attempts: 1, Pause: s}},
		{"second", retry.Failure{Err: cause, Attempts: 1}, retry.Decision{Attempts: 2, Pause: 2 * s}},
		{"last", retry.Failure{Err: cause, Attempts: 2}, retry.Decision{Attempts: 3, GiveUp: true}},
		{"beyond the last", retry.Failure{Err: cause, Attempts: 7}, retry.Decision{Attempts: 8, GiveUp: true}},
		{"permanent", retry.Failure{Err: postrider.Permanent(cause)}, retry.Decision{Attempts: 1, GiveUp: true}},
		{"unavailable", retry.Failure{Err: postrider.Unavailable(cause), Attempts: 2, Waited: 10 * s}, retry.Decision{Attempts: 2, Pause: 10 * s}},
		{"unavailable for long", retry.Failure{Err: postrider.Unavailable(cause), Age: 59 * m, Waited: 59 * m}, retry.Decision{Pause: m}},
		{"unavailable for too long", retry.Failure{Err: postrider.Unavailable(cause), Age: time.Hour}, retry.Decision{GiveUp: true}},
		{"too old", retry.Failure{Err: cause, Age: time.Hour}, retry.Decision{Attempts: 1, GiveUp: true}},
		{"asks for longer", retry.Failure{Err: postrider.RetryAfter(cause, 5*m)}, retry.Decision{Pause: 5 * m}},
		{"asks for less", retry.Failure{Err: postrider.RetryAfter(cause, 1)}, retry.Decision{Pause: s}},
		{"asks for a year", retry.Failure{Err: postrider.RetryAfter(cause, 365*24*time.Hour)}, retry.Decision{Pause: 24 * time.Hour}},
	} {
		if got := p.Decide(c.failure, 0); got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, c.want)
		}
	}
	p.Attempts, p.MaxAge = retry.Forever, 0
	if d := p.Decide(retry.Failure{Err: cause, Attempts: 1 << 40, Age: math.MaxInt64}, 0); d.GiveUp || d.Pause != m {
		t.Errorf("for ever: %+v", d)
	}
}
