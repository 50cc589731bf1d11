package reconcile

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// cron is a five-field expression. Each field is the set of its values, as bits.
type cron struct {
	text                              string
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool // the field begins with a star
	zone                              *time.Location
}

type cronField struct {
	name     string
	low, top int
	words    []string // names of the values low, low+1 and so on
}

var cronFields = []cronField{
	{"minute", 0, 59, nil},
	{"hour", 0, 23, nil},
	{"day of the month", 1, 31, nil},
	{"month", 1, 12, []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}},
	{"day of the week", 0, 7, []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}},
}

// parseCron parses "minute hour day month weekday", with lists, ranges, steps and names, as in
// crontab(5).
func parseCron(text string, zone *time.Location) (*cron, error) {
	if zone == nil {
		zone = time.UTC
	}
	c := &cron{text: text, zone: zone}
	fields := strings.Fields(text)
	if len(fields) != len(cronFields) {
		return nil, fmt.Errorf("%q has %d fields: want 5, minute hour day month weekday", text, len(fields))
	}
	sets := []*uint64{&c.minute, &c.hour, &c.day, &c.month, &c.weekday}
	var errs []error
	for i, f := range cronFields {
		set, err := f.parse(fields[i])
		if err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", f.name, fields[i], err))
		}
		*sets[i] = set
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c.weekday = c.weekday&0x7f | c.weekday>>7 // both 0 and 7 are Sunday
	c.anyDay, c.anyWeekday = fields[2][0] == '*', fields[4][0] == '*'
	if c.Next(time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("%q never comes", text)
	}
	return c, nil
}

func (f *cronField) parse(text string) (set uint64, err error) {
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			if every, err = strconv.Atoi(step); err != nil || every < 1 || every > f.top {
				return 0, fmt.Errorf("the step %q is not a number from 1 to %d", step, f.top)
			}
		}
		from, to := f.low, f.top
		if span != "*" {
			first, last, ranged := strings.Cut(span, "-")
			if from, err = f.value(first); err != nil {
				return 0, err
			}
			switch {
			case ranged:
				if to, err = f.value(last); err != nil {
					return 0, err
				}
			case !stepped:
				to = from
			}
			if from > to {
				return 0, fmt.Errorf("the range %q goes backwards", span)
			}
		}
		for v := from; v <= to; v += every {
			set |= 1 << v
		}
	}
	return set, nil
}

func (f *cronField) value(text string) (int, error) {
	for i, word := range f.words {
		if strings.EqualFold(text, word) {
			return f.low + i, nil
		}
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < f.low || n > f.top || text[0] == '+' {
		return 0, fmt.Errorf("%q is not a number from %d to %d", text, f.low, f.top)
	}
	return n, nil
}

// horizon is more than the longest gap between two times of an expression: 2100 has no 29 February.
const horizon = 9 * 366 * 24 * time.Hour

// Next works in real time. An hour that clocks skip is skipped, and one that they repeat occurs
// twice.
func (c *cron) Next(after time.Time) time.Time {
	t := after.In(c.zone).Truncate(time.Minute).Add(time.Minute)
	for end := after.Add(horizon); t.Before(end); {
		year, month, day := t.Date()
		switch {
		case c.month>>month&1 == 0:
			t = later(t, time.Date(year, month+1, 1, 0, 0, 0, 0, c.zone))
		case !c.onDay(t):
			t = later(t, time.Date(year, month, day+1, 0, 0, 0, 0, c.zone))
		case c.hour>>t.Hour()&1 == 0:
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case c.minute>>t.Minute()&1 == 0:
			t = t.Add(time.Minute)
		default:
			return t
		}
	}
	return time.Time{}
}

// later ensures that a jump goes forward, even where clocks are set back.
func later(t, to time.Time) time.Time {
	if to.After(t) {
		return to
	}
	return t.Add(time.Minute)
}

// onDay follows crontab: if both the day of the month and the day of the week are restricted,
// either suffices.
func (c *cron) onDay(t time.Time) bool {
	day, weekday := c.day>>t.Day()&1 == 1, c.weekday>>t.Weekday()&1 == 1
	if c.anyDay || c.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

func (c *cron) String() string {
	if c.zone == time.UTC {
		return c.text
	}
	return c.text + " " + c.zone.String()
}
