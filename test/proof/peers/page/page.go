// Package page generates the tables and plots of the comparison from results.
package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/postrider/postrider/test/proof/peers/result"
)

// The markers of the generated part of a page.
const (
	begin = "<!-- generated: make peers-table -->\n"
	end   = "<!-- end of what is generated -->\n"
)

// Text returns the generated part of the page: all tables, and links to the plots in the given
// folder.
func Text(run *result.Run, plots string) string {
	d := document{run: run, plots: plots}
	d.machine()
	d.rates()
	d.latencies()
	d.held()
	d.order()
	d.cost()
	d.better()
	d.setups()
	d.failures()
	return d.text.String()
}

// Plots returns the plots by file name.
func Plots(run *result.Run) map[string]string {
	d := document{run: run}
	plots := map[string]string{
		"sustained.svg": d.sustainedChart().svg(),
		"drain.svg":     d.drainChart().svg(),
		"latency.svg":   d.latencyChart().svg(),
		"cost.svg":      d.costChart().svg(),
	}
	for _, long := range []bool{false, true} {
		if d.age(long).N > 0 {
			plots[heldFile(long)] = d.heldChart(long).svg()
		}
	}
	return plots
}

// Fill replaces the generated part of a page.
func Fill(file, generated string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return fmt.Errorf("page: %s has no place for what is generated: two lines\n%s%s", file, begin, end)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+strings.TrimSpace(generated)+"\n\n"+end+after), 0o644)
}

// Draw writes the plots into a folder.
func Draw(run *result.Run, folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, svg := range Plots(run) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(svg), 0o644); err != nil {
			return err
		}
	}
	return nil
}
