// Command mutants plants mistakes that rules find in the product, one at a time, and wants a test to
// fail with each.
//
//	mutants [PACKAGE...]            some of each package, chosen by a seed
//	mutants -all relay              all of a package
//	mutants -only feed.Read relay   those whose names contain a text
//	mutants -list [PACKAGE...]      list them
//
// Run it in the root of the repository. The servers that tests need must run, with their addresses
// in the environment (dev/services env); a test whose server is missing finds nothing. Results are
// kept in bin/mutants.jsonl, so that a run that was stopped continues.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/postrider/postrider/test/proof/planted/rule"
)

// product lists the packages that are mutated, and whose tests look for mutants.
var product = []string{
	"relay", "relay/internal/shard", "relay/internal/doubt", "inbox", "saga", "idempotency", "reconcile", "retry",
	"store/memory", "store/postgres", "store/table",
	"broker", "broker/route", "broker/intake", "broker/codec", "broker/session", "broker/webhook",
	"broker/nats", "broker/kafka", "broker/rabbitmq", "broker/redis",
	"admin/console/internal/guard", "admin/console/auth", "admin/console/redact",
}

// open lists packages whose survivors have not been worked through. They are run only if they are
// named, so that the others can fail a check; the list has to become empty.
var open = []string{
	"relay", "relay/internal/shard", "saga", "store/memory", "store/postgres", "store/table",
	"broker/nats", "broker/kafka", "broker/rabbitmq", "broker/redis",
}

// outcome is what became of a mutant.
type outcome string

const (
	caught     outcome = "caught"
	survived   outcome = "survived"
	notReached outcome = "not reached" // by any test: a survivor too
	known      outcome = "explained"   // survived, and survivors.txt says why
)

// result is a line of the file of results.
type result struct {
	Name    string  `json:"name"`
	Change  string  `json:"change"`
	Source  string  `json:"source"` // hash of the file that was mutated
	Outcome outcome `json:"outcome"`
	By      string  `json:"by,omitempty"` // the test that failed first
	Seconds float64 `json:"seconds"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	seed := flags.Int("seed", 1, "chooses the mutants")
	most := flags.Int("most", 12, "mutants of each package")
	all := flags.Bool("all", false, "all mutants")
	list := flags.Bool("list", false, "only list them")
	only := flags.String("only", "", "only mutants whose name contains this `text`, of all")
	results := flags.String("results", "bin/mutants.jsonl", "keep results in this `file`; what was caught there is not run again")
	dir := flags.String("dir", "", "keep sources and tests in this `folder`")
	limit := flags.Duration("limit", time.Minute, "of one package's tests")
	others := flags.Int("others", 3, "run also the tests of this many packages that depend on the mutated one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := flags.Args()
	if len(chosen) == 0 {
		chosen = slices.DeleteFunc(slices.Clone(product), func(p string) bool { return slices.Contains(open, p) })
	}
	p, err := load(ctx, product)
	if err != nil {
		return err
	}
	explained, err := rule.Survivors()
	if err != nil {
		return err
	}
	if err := rule.Check(explained, p.all()); err != nil {
		return err
	}
	mutants := make(map[string][]rule.Mutant) // to run, by package
	for _, pkg := range chosen {
		of := p.mutants(pkg)
		if of == nil {
			return fmt.Errorf("%s is not one of %s", pkg, strings.Join(product, ", "))
		}
		switch {
		case *only != "":
			for _, m := range of {
				if strings.Contains(m.Name, *only) {
					mutants[pkg] = append(mutants[pkg], m)
				}
			}
		case *all:
			mutants[pkg] = of
		default:
			mutants[pkg] = rule.Sample(of, *seed, *most)
		}
	}
	if *list {
		for _, pkg := range chosen {
			for _, m := range mutants[pkg] {
				fmt.Printf("%s\n\t%s\n", m.Name, m)
			}
			fmt.Printf("%s: %d of %d\n", pkg, len(mutants[pkg]), len(p.mutants(pkg)))
		}
		return nil
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "mutants"); err != nil {
			return err
		}
		defer os.RemoveAll(*dir)
	}
	log, err := openResults(*results)
	if err != nil {
		return err
	}
	defer log.file.Close()
	r := &runner{product: p, log: log, explained: explained, dir: *dir, limit: *limit, others: *others}
	if err := r.prepare(); err != nil {
		return err
	}
	return r.all(ctx, chosen, mutants)
}

// runner runs mutants and prints a row for each.
type runner struct {
	product   *sources
	log       *resultLog
	explained map[string]rule.Known
	dir       string
	limit     time.Duration
	others    int // packages whose tests are run besides a package's own
	overlay   string
	tests     map[string]*tests // by package, once they are built
}

func (r *runner) all(ctx context.Context, packages []string, mutants map[string][]rule.Mutant) error {
	fmt.Println("| mutant | change | | by | seconds |\n|---|---|---|---|---|")
	count := make(map[string]map[outcome]int)
	sum, left := make(map[outcome]int), 0
	for _, pkg := range packages {
		count[pkg] = make(map[outcome]int)
		report := func(res result) error {
			_, explained := r.explained[res.Name]
			switch {
			case explained && res.Outcome == caught:
				fmt.Fprintf(os.Stderr, "%s is caught by %s: take it out of survivors.txt\n", res.Name, res.By)
			case explained:
				res.Outcome = known
			case res.Outcome != caught:
				left++
			}
			count[pkg][res.Outcome]++
			sum[res.Outcome]++
			fmt.Printf("| %s | `%s` | %s | %s | %.1f |\n", res.Name, strings.ReplaceAll(res.Change, "|", `\|`), res.Outcome, res.By, res.Seconds)
			if _, before := r.log.caught[res.Name]; before && res.Outcome == caught {
				return nil
			}
			return r.log.add(res)
		}
		if err := r.run(ctx, pkg, mutants[pkg], report); err != nil {
			return err
		}
	}
	fmt.Println("\n| package | mutants | caught | explained | survived | not reached |\n|---|---|---|---|---|---|")
	row := func(name string, c map[outcome]int) {
		all := c[caught] + c[known] + c[survived] + c[notReached]
		fmt.Printf("| %s | %d | %d | %d | %d | %d |\n", name, all, c[caught], c[known], c[survived], c[notReached])
	}
	for _, pkg := range packages {
		row(pkg, count[pkg])
	}
	row("all", sum)
	if left > 0 {
		return fmt.Errorf("%d mutants were not caught: write a test, delete the code, or add the reason to survivors.txt", left)
	}
	return nil
}

// run runs the tests that reach each of a package's mutants, its own first, until one fails. It
// reports a mutant as soon as it knows what became of it.
func (r *runner) run(ctx context.Context, pkg string, mutants []rule.Mutant, report func(result) error) error {
	results := make(map[string]result)
	for _, m := range mutants {
		res := result{Name: m.Name, Change: m.String(), Source: r.product.hash(m), Outcome: notReached}
		if old, ok := r.log.caught[m.Name]; ok && old.Change == res.Change && old.Source == res.Source {
			res = old
			if err := report(res); err != nil {
				return err
			}
		}
		results[m.Name] = res
	}
	users, err := r.product.users(ctx, pkg)
	if err != nil {
		return err
	}
	for _, user := range users[:min(1+r.others, len(users))] {
		for _, m := range mutants {
			res := results[m.Name]
			if _, explained := r.explained[m.Name]; res.Outcome == caught || explained && user != pkg {
				continue
			}
			t, err := r.testsOf(ctx, user)
			if err != nil {
				return err
			}
			if !t.reached[m.On()] {
				continue
			}
			start := time.Now()
			failed, err := t.run(ctx, m)
			if err != nil {
				return err
			}
			res.Outcome = survived
			res.Seconds += time.Since(start).Seconds()
			if failed != "" {
				res.Outcome, res.By = caught, user+" "+failed
				if err := report(res); err != nil {
					return err
				}
			}
			results[m.Name] = res
		}
	}
	for _, m := range mutants {
		if res := results[m.Name]; res.Outcome != caught {
			if err := report(res); err != nil {
				return err
			}
		}
	}
	return nil
}

// resultLog is a file of results, of which the caught mutants are kept.
type resultLog struct {
	file   *os.File
	caught map[string]result
}

func openResults(path string) (*resultLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	l := &resultLog{file: f, caught: make(map[string]result)}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r result
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
		}
		if r.Outcome == caught {
			l.caught[r.Name] = r
		}
	}
	return l, lines.Err()
}

func (l *resultLog) add(r result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = l.file.Write(append(line, '\n'))
	return err
}
