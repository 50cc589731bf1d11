package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/bench"
	"github.com/postrider/postrider/cmd/postrider/internal/chart"
	"github.com/postrider/postrider/cmd/postrider/internal/plan"
	"github.com/postrider/postrider/cmd/postrider/internal/scale"
	"github.com/postrider/postrider/internal/docpage"
)

// The figures of docs/scale.md are those of two files: what bench scale and bench soak have measured.
func TestScalePage(t *testing.T) {
	t.Parallel()
	set, err := scale.Measured()
	if err != nil {
		t.Fatal(err)
	}
	model, err := plan.NewModel(set, "")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	constantsPart(&b, set)
	ceilingsPart(&b, model)
	checksPart(&b, model)
	billionPart(&b, set)
	soakPart(t, &b)
	docpage.Check(t, *update, "../../../../docs/scale.md", "TestScalePage, in cmd/postrider/internal/cli", b.String())
	picture(t, "../../../../docs/scale/constants.svg", constantsChart(set))
}

// picture compares a file that is drawn from the figures, or writes it again.
func picture(t *testing.T, path, want string) {
	t.Helper()
	have, err := os.ReadFile(path)
	if err == nil && bytes.Equal(have, []byte(want)) {
		return
	}
	if !*update {
		t.Fatalf("%s is not drawn from the figures: go test -run TestScalePage -update, in cmd/postrider/internal/cli", path)
	}
	if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

func constantsPart(b *strings.Builder, set *scale.Set) {
	fmt.Fprintf(b, "## The constants\n\nMeasured %s on %s, PostgreSQL %s, by `%s`: %d rounds of %g s each, medians. Producers, server, relays and brokers share that machine.",
		set.Taken.Format(time.DateOnly), machineWords(set.Machine), set.Server.Version, set.Command, set.Rounds, set.Seconds)
	var settings []string
	for name, value := range set.Server.Settings {
		settings = append(settings, fmt.Sprintf("`%s = %s`", name, value))
	}
	slices.Sort(settings)
	fmt.Fprintf(b, " Settings: %s.\n\n", strings.Join(settings, ", "))
	b.WriteString("![What messages cost by their size, relays by their rate, and quiet databases by their number](scale/constants.svg)\n\n")
	b.WriteString("| | producers alone, messages/s | beside relays | ratio | server, s/M | of it for relays, s/M | relays, s/M | WAL, bytes | disk, bytes | statements/M | connections |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|\n")
	fmt.Fprintf(b, "| the business row alone | %s | | | %s | | | %s | | | |\n", whole(scale.Median(set.Business, scale.Phase.PerSecond)),
		tenth(1e6*scale.Median(set.Business, scale.PerCommitted(scale.ServerCPU))), whole(scale.Median(set.Business, scale.PerCommitted(scale.WAL))))
	for _, c := range set.Cells {
		if len(c.Bare) == 0 {
			continue
		}
		cost := func(figure func(scale.Phase) float64) float64 {
			return scale.Median(c.Relayed, scale.PerCommitted(figure))
		}
		alone, relayed := scale.Median(c.Bare, scale.Phase.PerSecond), scale.Median(c.Relayed, scale.Phase.PerSecond)
		fmt.Fprintf(b, "| %s | %s | %s | %.2f | %s | %s | %s | %s | %s | %s | %s |\n", cellWords(c), whole(alone), whole(relayed), relayed/alone,
			tenth(1e6*cost(scale.ServerCPU)), tenth(1e6*cost(scale.ReaderCPU)), tenth(1e6*cost(scale.RelayCPU)), whole(cost(scale.WAL)), whole(c.Disk),
			whole(1e6*cost(scale.Statements)), whole(relayConnections(c)))
	}
	b.WriteString("\ns/M: seconds of processor time for a million messages. Connections are those of relays.\n\n")

	b.WriteString("One relay and one feed, by the rate of messages:\n\n" +
		"| messages/s | server for relays, ms/s | relay, ms/s | statements/s | WAL, bytes/s |\n|---|---|---|---|---|\n")
	byRate := append(set.In(scale.Idle)[:1:1], set.In(scale.Rate)...)
	for _, c := range append(byRate, set.In(scale.Base)...) {
		second := func(figure func(scale.Phase) float64) float64 {
			return scale.Median(c.Relayed, scale.PerSecond(figure))
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", whole(scale.Median(c.Relayed, scale.Phase.PerSecond)), tenth(1000*second(scale.ReaderCPU)),
			tenth(1000*second(scale.RelayCPU)), tenth(second(scale.Statements)), whole(second(scale.WAL)))
	}
	b.WriteString("\nOne relay that looks after databases without any message:\n\n" +
		"| databases | server for relays, ms/s | relay, ms/s | statements/s | connections | memory of the relay, MB |\n|---|---|---|---|---|---|\n")
	for _, c := range set.In(scale.Idle) {
		second := func(figure func(scale.Phase) float64) float64 {
			return scale.Median(c.Relayed, scale.PerSecond(figure))
		}
		fmt.Fprintf(b, "| %d | %s | %s | %s | %s | %s |\n", c.Databases, tenth(1000*second(scale.ReaderCPU)), tenth(1000*second(scale.RelayCPU)),
			tenth(second(scale.Statements)), whole(relayConnections(c)),
			whole(scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayMemory) })/1e6))
	}
	for _, c := range set.In(scale.Drain) {
		cost := func(figure func(scale.Phase) float64) float64 {
			return 1e6 * scale.Median(c.Relayed, scale.PerPublished(figure))
		}
		fmt.Fprintf(b, "\nA backlog: one relay delivers %s messages/s to a destination that discards them, at %s s/M of the server, %s s/M of its own and %s statements/M. One sequence gives out %s numbers/s.\n",
			whole(scale.Median(c.Relayed, scale.Phase.PublishedPerSecond)), tenth(cost(scale.ReaderCPU)), tenth(cost(scale.RelayCPU)), whole(cost(scale.Statements)), whole(set.Sequence))
	}
	for _, line := range set.LeftOut {
		fmt.Fprintf(b, "\nLeft out: %s.\n", line)
	}
}

// ceilingsPart says at which rate each ceiling is met in one database of the measured machine.
func ceilingsPart(b *strings.Builder, model *plan.Model) {
	b.WriteString("\n## The first ceilings\n\nOne database, messages of 1 KiB, one destination, 70 % of the measured machine, by `postrider plan`:\n\n" +
		"| ceiling | met at, messages/s | then |\n|---|---|---|\n")
	in := planDefaults
	in.Rate = 1
	rates := make(map[string]float64)
	for _, c := range model.Compute(in).Ceilings {
		if rate := model.RateOf(in, c.Name); rate > 0 {
			rates[c.Name] = rate
		}
	}
	names := slices.SortedFunc(maps.Keys(rates), func(a, b string) int { return cmp.Compare(rates[a], rates[b]) })
	for _, name := range names {
		in.Rate = rates[name]
		all := model.Compute(in).Ceilings
		at := slices.IndexFunc(all, func(c plan.Ceiling) bool { return c.Name == name })
		fmt.Fprintf(b, "| %s | %s | %s |\n", name, whole(rates[name]), all[at].Then)
	}
	b.WriteString("\n```console\n$ postrider plan --rate 5000 --databases 20 --message-size 1KiB --destinations 2 --retention 7d\n")
	in.Rate, in.Databases, in.Destinations = 5000, 20, 2
	p := model.Compute(in)
	var out bytes.Buffer
	if err := (streams{out: &out}).table(p.Table()); err != nil {
		panic(err) // a buffer takes everything
	}
	b.WriteString(strings.TrimRight(out.String(), "\n"))
	for _, line := range p.Summary() {
		b.WriteString("\npostrider: " + line)
	}
	b.WriteString("\n```\n")
}

func checksPart(b *strings.Builder, model *plan.Model) {
	b.WriteString("\n## How far the plan is off\n\nThe plan is made from the cells with one relay, one feed and one database. These are others, at a steady rate: what it says of them, against\nwhat was measured.\n\n" +
		"| | relays' processor time | server for relays | WAL | statements |\n|---|---|---|---|---|\n")
	for _, c := range model.Checks() {
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", cellWords(c.Cell), off(c.Relay), off(c.Readers), off(c.WAL), off(c.Statement))
	}
}

func billionPart(b *strings.Builder, set *scale.Set) {
	b.WriteString("\n## A billion messages\n\n1 KiB each, one destination, at 1,000 a second in one database, by `postrider plan --rate 1000 --broker NAME`. Database hours are those that messages and relays add to the\nbusiness transactions.\n\n" +
		"| relays to | database, processor hours | relays, processor hours | WAL, GB | disk while they are kept, GB |\n|---|---|---|---|---|\n")
	names := []string{"discard"}
	for _, c := range set.In(scale.Broker) {
		names = append(names, c.To)
	}
	for _, name := range names {
		model, err := plan.NewModel(set, name)
		if err != nil {
			panic(err) // it was measured
		}
		in := planDefaults
		in.Rate, in.Broker = 1000, name
		cost := model.Compute(in).Cost
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", name, tenth(cost.MessageHours), tenth(cost.RelayHours), whole(cost.WAL), whole(cost.Disk))
	}
}

func soakPart(t *testing.T, b *strings.Builder) {
	t.Helper()
	text, err := os.ReadFile("../../../../docs/scale/soak.json")
	if err != nil {
		t.Fatal(err)
	}
	var r bench.SoakResult
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	verdict := "flat"
	if !r.Flat {
		verdict = "not flat"
	}
	fmt.Fprintf(b, "\n## A long run\n\n%s, by `%s`: %s messages, %s/s, which is %.0f %% of the %s/s that the machine carries from commit to effect through %s; %d without their effect. Verdict: %s. [All samples](scale/soak.json).\n\n",
		r.Taken.Format(time.DateOnly), r.Command, whole(float64(r.Messages)), whole(float64(r.Rate)), r.Load*100, whole(r.Full), r.Broker, r.Missing, verdict)
	b.WriteString("![Rate, memory, goroutines, files, latency and sizes over the run](scale/soak.svg)\n\n" +
		"| second half | median | growth | limit | |\n|---|---|---|---|---|\n")
	for _, trend := range r.Trends {
		if trend.Why != "" {
			fmt.Fprintf(b, "| %s | | | | %s |\n", trend.Name, trend.Why)
			continue
		}
		words := map[bool]string{true: "flat", false: "grows"}[trend.Flat]
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s |\n", trend.Name, trend.Amount(trend.Median), trend.Amount(trend.Growth), trend.Amount(trend.Limit), words)
	}
}

func constantsChart(set *scale.Set) string {
	sizes := append(set.In(scale.Base), set.In(scale.Payload)...)
	slices.SortFunc(sizes, func(a, b scale.Cell) int { return a.Payload - b.Payload })
	rates := append(append(set.In(scale.Idle)[:1:1], set.In(scale.Rate)...), set.In(scale.Base)...)
	line := func(cells []scale.Cell, x func(scale.Cell) float64, y func(scale.Cell) float64) (points []chart.Point) {
		for _, c := range cells {
			points = append(points, chart.Point{X: x(c), Y: y(c)})
		}
		return points
	}
	size := func(c scale.Cell) float64 { return float64(c.Payload) }
	rate := func(c scale.Cell) float64 { return scale.Median(c.Relayed, scale.Phase.PerSecond) }
	number := func(c scale.Cell) float64 { return float64(c.Databases) }
	each := func(figure func(scale.Phase) float64) func(scale.Cell) float64 {
		return func(c scale.Cell) float64 { return 1e6 * scale.Median(c.Relayed, scale.PerCommitted(figure)) }
	}
	second := func(times float64, figure func(scale.Phase) float64) func(scale.Cell) float64 {
		return func(c scale.Cell) float64 { return times * scale.Median(c.Relayed, scale.PerSecond(figure)) }
	}
	return chart.Draw("What messages cost", "", 3, []chart.Panel{
		{Title: "server, s/M, by bytes", Points: line(sizes, size, each(scale.ServerCPU))},
		{Title: "relay, s/M, by bytes", Points: line(sizes, size, each(scale.RelayCPU))},
		{Title: "WAL a message, by bytes", Unit: "bytes", Points: line(sizes, size, func(c scale.Cell) float64 { return each(scale.WAL)(c) / 1e6 })},
		{Title: "server for relays, ms/s, by rate", Points: line(rates, rate, second(1000, scale.ReaderCPU))},
		{Title: "relay, ms/s, by rate", Points: line(rates, rate, second(1000, scale.RelayCPU))},
		{Title: "statements/s, by rate", Points: line(rates, rate, second(1, scale.Statements))},
		{Title: "server, ms/s, by idle databases", Points: line(set.In(scale.Idle), number, second(1000, scale.ReaderCPU))},
		{Title: "relay, ms/s, by idle databases", Points: line(set.In(scale.Idle), number, second(1000, scale.RelayCPU))},
		{Title: "statements/s, by idle databases", Points: line(set.In(scale.Idle), number, second(1, scale.Statements))},
	})
}

func cellWords(c scale.Cell) string {
	switch c.Series {
	case scale.Base:
		return fmt.Sprintf("%d bytes, %d shards, one relay, one feed", c.Payload, c.Shards)
	case scale.Payload:
		return fmt.Sprintf("%d bytes", c.Payload)
	case scale.Broker:
		return "to " + c.To
	case scale.Check:
		return fmt.Sprintf("%d messages/s: relays %d, feeds %d, databases %d", c.Rate, c.Relays, c.Feeds, c.Databases)
	}
	return fmt.Sprintf("%d %s", map[string]int{scale.Shards: c.Shards, scale.Relays: c.Relays, scale.Feeds: c.Feeds, scale.Databases: c.Databases}[c.Series], c.Series)
}

func relayConnections(c scale.Cell) float64 {
	return scale.Median(c.Relayed, func(p scale.Phase) float64 { return float64(p.RelayConnections) })
}

func off(p plan.Pair) string { return fmt.Sprintf("%+.0f %%", 100*p.Off()) }

func tenth(v float64) string { return fmt.Sprintf("%.1f", v) }

// whole has commas between thousands.
func whole(v float64) string {
	text := fmt.Sprintf("%.0f", v)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
