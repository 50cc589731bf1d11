package report

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/postrider/postrider/test/proof/campaign/oracle"
)

// page is the Markdown of a report.
type page struct {
	name     string
	runs     []Run
	total    total
	pictures []File
	bytes.Buffer
}

func (p *page) linef(format string, args ...any) { fmt.Fprintf(&p.Buffer, format+"\n", args...) }

func (p *page) text() []byte {
	t := p.total
	p.linef("# What the fault campaign has shown\n")
	p.linef("%s with %s faults in %.0f minutes; %s committed messages, %s effects of consumers. %s\n",
		count(len(p.runs), "run"), number(int64(t.Faults)), t.Minutes, number(t.Events), number(t.Effects), p.summary())
	p.invariants()
	p.kinds()
	p.recoveries()
	p.duplicates()
	p.linef("![Duplicates by the kind of fault that caused them](%s-duplicates.svg)\n", p.name)
	p.runTable()
	p.linef("In the pictures below a fault stands in the row of everything that it touched. A gap in a curve is a time in which the database could not be asked.\n")
	for _, run := range p.runs {
		p.run(run)
	}
	return append(bytes.TrimRight(p.Bytes(), "\n"), '\n')
}

// summary states first whether anything is wrong.
func (p *page) summary() string {
	var broken, unknown []string
	for _, i := range p.total.invariants {
		if i.states[oracle.Broken] > 0 || i.together {
			broken = append(broken, i.ID)
		}
		if i.states[oracle.NotChecked] > 0 {
			unknown = append(unknown, i.ID)
		}
	}
	text := "No invariant was broken."
	if len(broken) > 0 {
		text = "**Broken: " + strings.Join(broken, ", ") + ".**"
	}
	if len(unknown) > 0 {
		text += " Not checked in every run: " + strings.Join(unknown, ", ") + "."
	}
	return text
}

func (p *page) invariants() {
	p.linef("| | what must not happen | found | budget | verdict |\n|---|---|---|---|---|")
	for _, i := range p.total.invariants {
		figure := strconv.FormatFloat(i.Figure, 'g', 4, 64)
		if i.states[oracle.NotChecked] == len(p.runs) {
			figure = ""
		}
		verdict := i.verdict(len(p.runs))
		if i.ID == "I6" && p.total.TooFewEvents() {
			verdict += " so far: each is explained, and there are too few messages to judge the share"
		}
		p.linef("| %s | %s | %s | %s | %s |", i.ID, i.Name, figure, i.Budget, verdict)
	}
	p.linef("")
}

func (p *page) kinds() {
	p.linef("## Faults\n\n| kind | faults | duplicates | recovery, without another fault: median | longest |\n|---|---|---|---|---|")
	for _, k := range p.total.kinds {
		median, longest := "", ""
		if n := len(k.recoveries); n > 0 {
			median, longest = seconds(quantile(k.recoveries, 0.5)), seconds(k.recoveries[n-1])
		}
		p.linef("| %s | %s | %s | %s | %s |", k.name, number(int64(k.faults)), number(k.duplicates), median, longest)
	}
	p.linef("")
}

func (p *page) recoveries() {
	p.linef("## Recovery\n")
	p.linef("How long after a fault was healed messages still had to wait: until nothing was left, or the oldest had waited less than 2 s. Faults overlap,\n" +
		"so part of that time another one was under way; the second row of bars leaves that out.\n")
	p.linef("![Recovery times](%s-recovery.svg)\n", p.name)
	p.linef("| | median | 90 %% | 99 %% | longest |\n|---|---|---|---|---|")
	for _, row := range []struct {
		name string
		of   func(oracle.Recovery) float64
	}{
		{"since the heal", func(r oracle.Recovery) float64 { return r.Seconds }},
		{"without another fault", func(r oracle.Recovery) float64 { return r.Clear }},
	} {
		var all []float64
		for _, r := range p.total.recoveries {
			all = append(all, row.of(r))
		}
		slices.Sort(all)
		p.linef("| %s | %s | %s | %s | %s |", row.name,
			seconds(quantile(all, 0.5)), seconds(quantile(all, 0.9)), seconds(quantile(all, 0.99)), seconds(quantile(all, 1)))
	}
	p.linef("")
}

func (p *page) duplicates() {
	t := p.total
	p.linef("## Duplicates at destinations\n")
	if len(t.promises) > 0 {
		p.linef("| destination | promise | messages | came again | of these after a restore | share |\n|---|---|---|---|---|---|")
		for _, of := range slices.SortedFunc(maps.Keys(t.promises), promise.compare) {
			d, word := t.promises[of], "at least once"
			if of.once {
				word = "once"
			}
			p.linef("| %s | %s | %s | %s | %s | %.4f %% |", of.destination, word, number(d.Events), number(d.Duplicates), number(d.Restored),
				100*float64(d.Duplicates)/float64(max(d.Events, 1)))
		}
		p.linef("")
	}
	p.linef("%s of %s committed messages came again; of those to destinations that promise at least once, %.4f %%. Each is counted for the fault\n"+
		"that was the last to begin among those that can have caused it.\n", number(t.Duplicates), number(t.Events), 100*t.DuplicateShare())
}

func (p *page) runTable() {
	p.linef("## Runs\n\n| run | seed | commit | begin (UTC) | minutes | faults | messages | duplicates | verdict |\n|---|---|---|---|---|---|---|---|---|")
	for _, run := range p.runs {
		v, verdict := run.Verdict, "ok"
		if broken := v.Broken(); len(broken) > 0 {
			verdict = "**broken:** " + ids(broken)
		} else if unknown := v.NotChecked(); len(unknown) > 0 {
			verdict = "ok; not checked: " + ids(unknown)
		}
		commit := fmt.Sprintf("`%.12s`", cmp.Or(run.Commit, "unknown"))
		if run.Dirty {
			commit += " and changes"
		}
		p.linef("| %s | %d | %s | %s | %.1f | %s | %s | %s | %s |", run.ID, run.Seed, commit, run.Begin.UTC().Format("2006-01-02 15:04"),
			v.Counts.Minutes, number(int64(v.Counts.Faults)), number(v.Counts.Events), number(v.Counts.Duplicates), verdict)
	}
	p.linef("")
}

func (p *page) run(run Run) {
	p.linef("### %s\n", run.ID)
	p.linef("![Faults and what waited in this run](%s-timeline-%s.svg)\n", p.name, safe(run.ID))
	if len(run.Versions) > 0 {
		p.linef("Versions: %s.\n", pairs(run.Versions, " "))
	}
	if flags := pairs(telling(run.Flags), "="); flags != "" {
		p.linef("Flags: %s.\n", flags)
	}
	for _, warning := range run.Verdict.Warnings {
		p.linef("**Warning:** %s.\n", warning)
	}
	for _, f := range run.Verdict.Findings {
		if f.State != oracle.OK {
			p.linef("%s, %s: %s. %s\n", f.ID, f.Name, f.State, f.Note)
		}
		if f.State == oracle.Broken {
			p.linef("```text\n%s\n```\n", strings.Join(f.Examples, "\n"))
		}
	}
	if len(run.Hashes) > 0 {
		p.linef("SHA-256 of its files:\n\n```text")
		for _, name := range slices.Sorted(maps.Keys(run.Hashes)) {
			p.linef("%s  %s", run.Hashes[name], name)
		}
		p.linef("```\n")
	}
}

// telling returns the flags of interest to others: without unset ones and files of the machine.
func telling(flags map[string]string) map[string]string {
	some := maps.Clone(flags)
	maps.DeleteFunc(some, func(_, value string) bool { return value == "" || value == "false" || strings.Contains(value, "/") })
	return some
}

func ids(findings []oracle.Finding) string {
	var all []string
	for _, f := range findings {
		all = append(all, f.ID)
	}
	return strings.Join(all, ", ")
}

func pairs(m map[string]string, between string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		all = append(all, name+between+m[name])
	}
	return strings.Join(all, ", ")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// number formats 1234567 as 1,234,567.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func seconds(s float64) string { return fmt.Sprintf("%.1f s", s) }
