package reconcile

import (
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestCron(t *testing.T) {
	for _, c := range []struct{ expression, zone, after, want string }{
		{"* * * * *", "", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
		{"* * * * *", "", "2026-01-01T00:00:59Z", "2026-01-01T00:01:00Z"},
		{"*/15 * * * *", "", "2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"},
		{"5/20 * * * *", "", "2026-01-01T00:46:00Z", "2026-01-01T01:05:00Z"},
		{"0 8-18/5 * * MON-fri", "", "2026-01-02T18:30:00Z", "2026-01-05T08:00:00Z"},
		{"30 2 29 2 *", "", "2026-01-01T00:00:00Z", "2028-02-29T02:30:00Z"},
		{"0 0 29 feb *", "", "2096-03-01T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 13 * 5", "", "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"},
		{"0 0 */2 * 1", "", "2026-01-01T00:00:00Z", "2026-01-05T00:00:00Z"},
		{"0 0 * * 7", "", "2026-01-01T00:00:00Z", "2026-01-04T00:00:00Z"},
		{"0 0 1,15 dec *", "", "2026-12-02T00:00:00Z", "2026-12-15T00:00:00Z"},
		{"30 9 * * *", "Asia/Kolkata", "2026-01-01T00:00:00Z", "2026-01-01T04:00:00Z"},
		// Clocks go from 2 to 3: the hour between is skipped.
		{"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T00:30:00Z"},
		// Clocks go from 3 to 2: the hour occurs twice.
		{"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z"},
		// A day without midnight.
		{"0 0 * * *", "America/Santiago", "2026-09-05T12:00:00Z", "2026-09-07T03:00:00Z"},
	} {
		s, err := ParseSchedule("", c.expression, c.zone)
		if err != nil {
			t.Errorf("%s: %v", c.expression, err)
			continue
		}
		if got := s.Next(at(t, c.after)); !got.Equal(at(t, c.want)) {
			t.Errorf("%s %s after %s: %v, want %s", c.expression, c.zone, c.after, got.UTC(), c.want)
		}
	}
}

func TestScheduleMistakes(t *testing.T) {
	for _, c := range [][3]string{
		{"", "", ""}, {"5m", "* * * * *", ""}, {"5", "", ""}, {"-5m", "", ""}, {"5m", "", "UTC"}, {"", "* * * *", ""}, {"", "* * * * * *", ""},
		{"", "60 * * * *", ""}, {"", "* 24 * * *", ""}, {"", "* * 0 * *", ""}, {"", "* * * 13 *", ""}, {"", "* * * * 8", ""},
		{"", "5-1 * * * *", ""}, {"", "*/0 * * * *", ""}, {"", "1,,2 * * * *", ""}, {"", "+1 * * * *", ""}, {"", "0 0 31 2 *", ""},
		{"", "- * * * *", ""}, {"", "* * * * *", "Nowhere/At_All"}, {"", "* * * * monday", ""},
	} {
		if s, err := ParseSchedule(c[0], c[1], c[2]); err == nil {
			t.Errorf("%q was accepted as %v", c, s)
		}
	}
	for expression, want := range map[string]string{"5-1 * * * *": `"5-1" goes backwards`, "5-60 * * * *": `"60" is not a number from 0 to 59`} {
		if _, err := ParseSchedule("", expression, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", expression, err, want)
		}
	}
}

// FuzzCron compares Next with a minute-by-minute search by an independent reading of the fields.
func FuzzCron(f *testing.F) {
	for _, seed := range []string{"* * * * *", "*/7 3-9/2 1,15 jan-jun mon", "0 0 13 * 5", "59 23 31 12 7", "0 0 29 2 *", "1,2,3-5/2 * * * *"} {
		f.Add(seed, int64(1_767_225_600))
		f.Add(seed, int64(1_774_746_000))
	}
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expression string, unix int64) {
		c, err := parseCron(expression, zone)
		if err != nil {
			return
		}
		after := time.Unix(1_700_000_000+unix%1_000_000_000, 0)
		next := c.Next(after)
		if !next.After(after) || next.Second() != 0 || next.Nanosecond() != 0 || !fits(c, next) {
			t.Fatalf("%q after %v: %v", expression, after, next)
		}
		minute := after.In(zone).Truncate(time.Minute).Add(time.Minute)
		for range 3 * 24 * 60 {
			if !minute.Before(next) {
				return
			}
			if fits(c, minute) {
				t.Fatalf("%q after %v: %v, but %v comes before", expression, after, next, minute)
			}
			minute = minute.Add(time.Minute)
		}
	})
}

// fits is a simple reference implementation of the match.
func fits(c *cron, t time.Time) bool {
	has := func(set uint64, v int) bool { return set&(1<<uint(v)) != 0 }
	day, weekday := has(c.day, t.Day()), has(c.weekday, int(t.Weekday()))
	days := day && weekday
	if !c.anyDay && !c.anyWeekday {
		days = day || weekday
	}
	return has(c.minute, t.Minute()) && has(c.hour, t.Hour()) && has(c.month, int(t.Month())) && days
}
