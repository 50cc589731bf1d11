package oracle

import "fmt"

const mostExamples = 20

// evidence counts violations of an invariant and keeps the first few as examples.
type evidence struct {
	count    int64
	examples []string
}

func (e *evidence) add(format string, args ...any) {
	e.count++
	if len(e.examples) < mostExamples {
		e.examples = append(e.examples, fmt.Sprintf(format, args...))
	}
}

// times is add for something that happened more than once.
func (e *evidence) times(n int64, format string, args ...any) {
	if n > 0 {
		e.add(format, args...)
		e.count += n - 1
	}
}

func (e *evidence) merge(other evidence) {
	e.count += other.count
	e.examples = append(e.examples, other.examples...)
	e.examples = e.examples[:min(len(e.examples), mostExamples)]
}

// judge returns OK if there is no violation.
func (e *evidence) judge(id, name, budget, note string) Finding {
	f := Finding{ID: id, Name: name, State: OK, Figure: float64(e.count), Budget: budget, Note: note, Examples: e.examples}
	if e.count > 0 {
		f.State = Broken
	}
	return f
}

// unless turns OK into "not checked" if there is a reason. A broken invariant stays broken: missing
// data does not repair it.
func (f Finding) unless(reason string) Finding {
	if reason != "" && f.State == OK {
		f.State, f.Note = NotChecked, join(reason, f.Note)
	}
	return f
}

func notChecked(id, name, budget, reason string) Finding {
	return Finding{ID: id, Name: name, State: NotChecked, Budget: budget, Note: reason}
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}
