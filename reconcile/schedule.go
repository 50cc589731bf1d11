package reconcile

import (
	"errors"
	"fmt"
	"time"
)

// Schedule determines when a job is due.
type Schedule interface {
	// Next returns the first due time after the given one.
	Next(after time.Time) time.Time
	// String describes the schedule. Equal schedules have equal descriptions.
	String() string
}

// Every returns a schedule with a fixed interval between the starts of runs. It panics if d is not
// positive.
func Every(d time.Duration) Schedule {
	if d <= 0 {
		panic(fmt.Sprintf("reconcile: every %v", d))
	}
	return every(d)
}

type every time.Duration

func (e every) Next(after time.Time) time.Time { return after.Add(time.Duration(e)) }

func (e every) String() string { return "every " + time.Duration(e).String() }

// Cron returns the schedule of a five-field expression such as "*/5 8-18 * * mon-fri": minute,
// hour, day of the month, month, day of the week. If both days are restricted, either suffices.
// Times that clocks skip are skipped, and times that they repeat occur twice. A nil zone is UTC.
func Cron(expression string, zone *time.Location) (Schedule, error) {
	c, err := parseCron(expression, zone)
	if err != nil {
		return nil, fmt.Errorf("reconcile: cron: %w", err)
	}
	return c, nil
}

// ParseSchedule parses a schedule from configuration: either a duration or a cron expression with
// the name of a time zone. An empty zone is UTC.
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
