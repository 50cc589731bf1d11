package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Table returns the plan as rows: what, how much, and the basis.
func (p *Plan) Table() [][]string {
	in := &p.Inputs
	rows := [][]string{{"WHAT", "HOW MUCH", "BASIS"}}
	row := func(what, value string, basis Basis, why string) {
		rows = append(rows, []string{what, value, strings.TrimSuffix(string(basis)+": "+why, ": ")})
	}
	given := func(is bool, otherwise Basis) Basis {
		if is {
			return Given
		}
		return otherwise
	}
	row("relay processes", p.relays(), given(in.Relays > 0, Computed), "from the processor time of relays; "+p.spare())
	row("shards of each log", strconv.Itoa(p.Shards), given(in.Shards > 0, Computed), "eight, or twice the relays of a feed")
	row("layout", fmt.Sprintf("postrider migrate up --shards %d --slots %d --period %s", p.Shards, p.Slots, shortDuration(p.Period)), Computed,
		fmt.Sprintf("keeps %s to %s", days(p.Period*time.Duration(p.Slots-2)), days(p.Period*time.Duration(p.Slots-1))))
	row("connections of relays to a server", strconv.Itoa(p.Connections), Computed, p.connections())
	row("statements of relays", number(p.Statements)+"/s", Computed, fmt.Sprintf("from measured rates; %s/s of them with no messages at all", number(p.IdleShare)))
	row("cores of database servers", number(p.ServerCores), Computed, "from measured processor time, with one business row a message")
	row("… added by messages and relays", number(p.MessageCores), Computed, "the same without the transactions themselves")
	row("… of that, to look for messages", number(p.PollingCores), Computed, "what the same relays take when there are none")
	row("cores of relays", number(p.RelayCores), Computed, "from measured processor time, destination "+p.Broker)
	row("WAL", fmt.Sprintf("%s/s, %s a day", bytes(p.WAL), bytes(p.WAL*86400)), Computed, fmt.Sprintf("%s measured for each message", bytes(p.WALMessages)))
	row("disk of the logs", bytes(p.Disk), Computed, fmt.Sprintf("%s for each message, %d slots", bytes(p.DiskMessage), p.Slots-1))
	row("memory of a relay", bytes(p.Memory), Computed, "from measured memory, while it keeps up")
	row("… with a destination that is down", "up to "+bytes(p.MemoryMost), Computed, fmt.Sprintf("read_ahead of %d messages for each shard", readAhead))

	rows = append(rows, []string{}, []string{"CEILING", "USED", "BASIS"})
	for _, c := range p.Ceilings {
		row(c.Name, c.used(), c.Basis, percent(c.Share)+" of what may be used")
	}
	rows = append(rows, []string{}, []string{"A BILLION MESSAGES", "COST", "BASIS"})
	row("processor hours, database servers", number(p.Cost.ServerHours), Computed, number(p.Cost.MessageHours)+" of them added by messages and relays")
	row("processor hours, relays", number(p.Cost.RelayHours), Computed, "")
	row("WAL", number(p.Cost.WAL)+" GB", Computed, "without the business rows'")
	row("disk", number(p.Cost.Disk)+" GB", Computed, "while they are kept")
	if p.Cost.Price > 0 {
		row("price", number(p.Cost.Price), Computed, fmt.Sprintf("from the prices given: processor %s, WAL %s, disk %s",
			number(p.Cost.CPUPrice), number(p.Cost.WALPrice), number(p.Cost.DiskPrice)))
	}
	return rows
}

// Summary returns the most important results, one sentence per line.
func (p *Plan) Summary() []string {
	first := p.Ceilings[0]
	at := fmt.Sprintf("it is met at %s messages/s", number(p.MostRate))
	switch {
	case first.Share > 1 && p.MostRate < 1:
		at = "it is met already, at any rate"
	case first.Share > 1:
		at = fmt.Sprintf("it is met already, at %s messages/s", number(p.MostRate))
	}
	lines := []string{
		fmt.Sprintf("the first ceiling is %s: %s", first.Name, at),
		"then: " + first.Then,
	}
	for _, what := range p.Beyond {
		lines = append(lines, "beyond what was measured: "+what)
	}
	return lines
}

func (p *Plan) relays() string {
	if p.Groups == 1 {
		return strconv.Itoa(p.Relays)
	}
	return fmt.Sprintf("%d: %d groups of %d, each with its own databases", p.Relays, p.Groups, p.Sharing)
}

func (p *Plan) spare() string {
	if p.Inputs.Zones == 1 {
		return fmt.Sprintf("%d needed, one may be away", p.Needed)
	}
	return fmt.Sprintf("%d needed, one of %d zones may be away", p.Needed, p.Inputs.Zones)
}

func (p *Plan) connections() string {
	if p.Budget == 0 {
		return "four for each relay and feed"
	}
	return fmt.Sprintf("with connections: %d in the relays' file, as four for each feed would be too many", p.Budget)
}

// used formats the need and the limit.
func (c *Ceiling) used() string {
	if rest, ok := strings.CutPrefix(c.Unit, "bytes"); ok {
		return fmt.Sprintf("%s%s of %s%s", bytes(c.Need), rest, bytes(c.Have), rest)
	}
	return fmt.Sprintf("%s of %s %s", number(c.Need), number(c.Have), c.Unit)
}

func percent(share float64) string { return number(share*100) + " %" }

// number formats a number with three significant digits.
func number(v float64) string {
	switch {
	case v == math.Trunc(v) && v < 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 999.5:
		return grouped(math.Round(v))
	case v >= 99.5:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 9.95:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case v >= 0.1:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'g', 2, 64)
}

// grouped formats a number with three significant digits and commas between thousands.
func grouped(v float64) string {
	scale := math.Pow10(max(0, int(math.Log10(v))-2))
	text := strconv.FormatFloat(math.Round(v/scale)*scale, 'f', 0, 64)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// bytes formats a size in decimal units.
func bytes(v float64) string {
	for _, unit := range []string{"B", "kB", "MB", "GB", "TB"} {
		if v < 999.5 {
			return number(v) + " " + unit
		}
		v /= 1000
	}
	return number(v) + " PB"
}

func days(d time.Duration) string {
	if d >= 48*time.Hour {
		return number(d.Hours()/24) + " days"
	}
	if d >= 2*time.Hour {
		return number(d.Hours()) + " hours"
	}
	return number(d.Minutes()) + " minutes"
}

// shortDuration formats 28h0m0s as 28h.
func shortDuration(d time.Duration) string {
	text := d.String()
	for _, rest := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, rest) {
			text = text[:len(text)-2]
		}
	}
	return text
}
