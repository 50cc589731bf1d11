package main

import "strings"

// An event is one line that go test -json prints.
type event struct {
	Action      string
	Package     string
	ImportPath  string // of build-output
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// The results of a test or a package. A test that has not ended when its package has is unfinished:
// the process crashed or timed out.
const (
	passed     = "pass"
	failed     = "fail"
	skipped    = "skip"
	unfinished = "unfinished"
)

// A result is the outcome of a test or, if it names no test, of a package.
type result struct {
	Package string
	Test    string
	Action  string
	Seconds float64
	Output  string // of what did not pass
}

// maxOutput limits how many bytes of a test's output are kept: the end, where the failure is.
const maxOutput = 64 << 10

// A collector turns events into results.
type collector struct {
	open   map[[2]string]*strings.Builder // by package and test
	builds map[string]*strings.Builder    // the compiler's output, by package
	done   []result
}

func newCollector() *collector {
	return &collector{open: make(map[[2]string]*strings.Builder), builds: make(map[string]*strings.Builder)}
}

// add processes an event and returns the results that it completes.
func (c *collector) add(e event) []result {
	key := [2]string{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		write(c.builds, e.ImportPath, e.Output)
	case "run", "start":
		c.open[key] = new(strings.Builder)
	case "output":
		write(c.open, key, e.Output)
	case passed, failed, skipped:
		from := len(c.done)
		if e.Test == "" {
			c.unfinished(e.Package)
		}
		c.end(key, e)
		return c.done[from:]
	}
	return nil
}

func (c *collector) end(key [2]string, e event) {
	r := result{Package: e.Package, Test: e.Test, Action: e.Action, Seconds: e.Elapsed}
	if e.Action != passed {
		if b := c.builds[e.FailedBuild]; b != nil {
			r.Output = b.String()
		}
		if b := c.open[key]; b != nil {
			r.Output += b.String()
		}
	}
	delete(c.open, key)
	c.done = append(c.done, r)
}

// unfinished records the tests of a package that had not ended when the package did.
func (c *collector) unfinished(pkg string) {
	for key := range c.open {
		if key[0] == pkg && key[1] != "" {
			c.end(key, event{Action: unfinished, Package: pkg, Test: key[1]})
		}
	}
}

func write[K comparable](all map[K]*strings.Builder, key K, text string) {
	b := all[key]
	if b == nil {
		b = new(strings.Builder)
		all[key] = b
	}
	if b.Len()+len(text) > maxOutput {
		kept := b.String()
		b.Reset()
		b.WriteString("…\n" + kept[len(kept)/2:])
	}
	b.WriteString(text[:min(len(text), maxOutput/2)])
}
