package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// sizeFlag is a number of bytes, with or without a unit.
type sizeFlag int64

var _ pflag.Value = (*sizeFlag)(nil)

// sizeUnits are the units of sizes. A name comes before the names that it ends with.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}, {"kB", 1e3}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1}, {"", 1},
}

// Set implements [pflag.Value].
func (f *sizeFlag) Set(text string) error {
	for _, unit := range sizeUnits {
		digits, ok := strings.CutSuffix(text, unit.name)
		if !ok {
			continue
		}
		value, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
		if err != nil || !(value*unit.bytes >= 0 && value*unit.bytes < 1<<62) {
			break
		}
		*f = sizeFlag(value * unit.bytes)
		return nil
	}
	return fmt.Errorf("want a size such as 300, 1KiB or 2MB")
}

func (f *sizeFlag) String() string {
	if *f == 0 {
		return "0"
	}
	for _, unit := range []string{"TiB", "GiB", "MiB", "KiB"} {
		for _, u := range sizeUnits {
			if u.name == unit && int64(*f)%int64(u.bytes) == 0 {
				return strconv.FormatInt(int64(*f)/int64(u.bytes), 10) + unit
			}
		}
	}
	return strconv.FormatInt(int64(*f), 10) + "B"
}

// Type implements [pflag.Value].
func (*sizeFlag) Type() string { return "size" }

// daysFlag is a duration that may be given in days.
type daysFlag time.Duration

var _ pflag.Value = (*daysFlag)(nil)

// Set implements [pflag.Value].
func (f *daysFlag) Set(text string) error {
	if digits, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.ParseFloat(digits, 64)
		if err != nil || !(n >= 0 && n <= 36500) {
			return fmt.Errorf("want a number of days such as 7d")
		}
		*f = daysFlag(n * 24 * float64(time.Hour))
		return nil
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("want a duration such as 7d, 12h or 30m")
	}
	*f = daysFlag(d)
	return nil
}

func (f *daysFlag) String() string {
	if d := time.Duration(*f); d > 0 && d%(24*time.Hour) == 0 {
		return strconv.Itoa(int(d/(24*time.Hour))) + "d"
	}
	return time.Duration(*f).String()
}

// Type implements [pflag.Value].
func (*daysFlag) Type() string { return "duration" }

// percentFlag is a fraction, given in per cent.
type percentFlag float64

var _ pflag.Value = (*percentFlag)(nil)

// Set implements [pflag.Value].
func (f *percentFlag) Set(text string) error {
	digits, ok := strings.CutSuffix(text, "%")
	value, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	if !ok || err != nil {
		return fmt.Errorf("want a share such as 70%%")
	}
	*f = percentFlag(value / 100)
	return nil
}

func (f *percentFlag) String() string { return strconv.FormatFloat(float64(*f)*100, 'g', 4, 64) + "%" }

// Type implements [pflag.Value].
func (*percentFlag) Type() string { return "percent" }

func (f percentFlag) use() string { return f.String() + " of a machine may be used" }
