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
	most := flags.Int("most", 8, "mutants of each package")
	all := flags.Bool("all", false, "all mutants")
	list := flags.Bool("list", false, "only list them")
	only := flags.String("only", "", "only mutants whose name contains this `text`, of all")
	results := flags.String("results", "bin/mutants.jsonl", "keep results in this `file`; what was caught there is not run again")
	dir := flags.String("dir", "", "keep sources and tests in this `folder`")
	limit := flags.Duration("limit", time.Minute, "of one package's tests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen := flags.Args()
	if len(chosen) == 0 {
		chosen = product
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
	r := &runner{product: p, log: log, explained: explained, dir: *dir, limit: *limit}
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
	overlay   string
	tests     map[string]*tests // by package, once they are built
}

func (r *runner) all(ctx context.Context, packages []string, mutants map[string][]rule.Mutant) error {
	fmt.Println("| mutant | change | | by | seconds |\n|---|---|---|---|---|")
	count := make(map[string]map[outcome]int)
	total := make(map[outcome]int)
	var left []result
	for _, pkg := range packages {
		count[pkg] = make(map[outcome]int)
		for _, m := range mutants[pkg] {
			got, err := r.one(ctx, pkg, m)
			if err != nil {
				return err
			}
			_, isExplained := r.explained[m.Name]
			switch {
			case got.Outcome == caught && isExplained:
				fmt.Printf("%s is caught by %s: take it out of survivors.txt\n", m.Name, got.By)
			case isExplained:
				got.Outcome = known
			case got.Outcome != caught:
				left = append(left, got)
			}
			count[pkg][got.Outcome]++
			total[got.Outcome]++
			fmt.Printf("| %s | `%s` | %s | %s | %.1f |\n", m.Name, strings.ReplaceAll(m.String(), "|", `\|`), got.Outcome, got.By, got.Seconds)
		}
	}
	fmt.Println("\n| package | mutants | caught | explained | survived | not reached |\n|---|---|---|---|---|---|")
	row := func(name string, n int, c map[outcome]int) {
		fmt.Printf("| %s | %d | %d | %d | %d | %d |\n", name, n, c[caught], c[known], c[survived], c[notReached])
	}
	sum := 0
	for _, pkg := range packages {
		row(pkg, len(mutants[pkg]), count[pkg])
		sum += len(mutants[pkg])
	}
	row("all", sum, total)
	if len(left) > 0 {
		return fmt.Errorf("%d of %d mutants were not caught: write a test, delete the code, or add the reason to survivors.txt", len(left), sum)
	}
	return nil
}

// one runs the tests that reach a mutant until one fails.
func (r *runner) one(ctx context.Context, pkg string, m rule.Mutant) (result, error) {
	res := result{Name: m.Name, Change: m.String(), Source: r.product.hash(m), Outcome: notReached}
	if old, ok := r.log.caught[m.Name]; ok && old.Change == res.Change && old.Source == res.Source {
		return old, nil
	}
	start := time.Now()
	users, err := r.product.users(ctx, pkg)
	if err != nil {
		return res, err
	}
	for _, user := range users {
		t, err := r.testsOf(ctx, user)
		if err != nil {
			return res, err
		}
		if !t.reached[m.On()] {
			continue
		}
		res.Outcome = survived
		failed, err := t.run(ctx, m, r.limit)
		if err != nil {
			return res, err
		}
		if failed != "" {
			res.Outcome, res.By = caught, user+" "+failed
			break
		}
	}
	res.Seconds = time.Since(start).Seconds()
	return res, r.log.add(res)
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
