package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// Schedule says when a job is due.
type Schedule interface {
	// Next returns the first time after the given one.
	Next(after time.Time) time.Time
	// String is for people, and tells whether two schedules are the same.
	String() string
}

// Every returns a schedule with a fixed time from one run's beginning to the next. It panics if that is not positive.
func Every(d time.Duration) Schedule {
	if d <= 0 {
		panic(fmt.Sprintf("reconcile: every %v", d))
	}
	return every(d)
}

type every time.Duration

func (e every) Next(after time.Time) time.Time { return after.Add(time.Duration(e)) }

func (e every) String() string { return "every " + time.Duration(e).String() }

// Cron returns the schedule of a five-field expression such as "*/5 8-18 * * mon-fri": minute, hour, day of the month,
// month, day of the week. If both days are restricted, either will do. Where clocks are set forward, times between are left
// out; where they are set back, they come twice. A nil zone is UTC.
func Cron(expression string, zone *time.Location) (Schedule, error) {
	c, err := parseCron(expression, zone)
	if err != nil {
		return nil, fmt.Errorf("reconcile: cron: %w", err)
	}
	return c, nil
}

// ParseSchedule reads a schedule from texts, as configuration files have them: a duration or a cron expression, not both,
// and the name of a zone for the latter. An empty zone is UTC.
func ParseSchedule(duration, expression, zone string) (Schedule, error) {
	switch {
	case duration != "" && expression != "":
		return nil, fmt.Errorf("reconcile: every %s and cron %q contradict each other: want one", duration, expression)
	case duration == "" && expression == "":
		return nil, errors.New("reconcile: neither every nor cron says when the job is due")
	case duration != "" && zone != "":
		return nil, fmt.Errorf("reconcile: every %s and zone %s contradict each other: only cron has a zone", duration, zone)
	case duration != "":
		d, err := time.ParseDuration(duration)
		if err != nil || d <= 0 {
			return nil, fmt.Errorf("reconcile: every %q is not a duration such as 5m", duration)
		}
		return Every(d), nil
	}
	location, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("reconcile: zone: %w", err)
	}
	return Cron(expression, location)
}
