// Command planted plants known bugs into Postrider, one at a time, and wants them to be found.
//
//	planted list               the bugs, and where each is found
//	planted tests [ID...]      by tests that are there anyway: one must fail with each bug
//	planted mutants [ID...]    small mistakes in the PostgreSQL store: the tests of the place must fail with each, within a minute
//	planted hunt [ID...]       by short fault campaigns: an invariant must be broken with each bug, and none without
//	planted overlay ID DIR     writes what go build -overlay needs
//
// Run it in the root of the repository. The servers that tests need must run, with their addresses
// in the environment (dev/services env).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/postrider/postrider/test/proof/planted"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("want list, tests, mutants, hunt or overlay")
	}
	if _, err := os.Stat("go.work"); err != nil {
		return errors.New("run it in the root of the repository")
	}
	command, args := args[0], args[1:]
	switch command {
	case "list":
		list()
		return nil
	case "overlay":
		if len(args) != 2 {
			return errors.New("want a bug and a folder")
		}
		bugs, err := choose(slices.Concat(planted.All(), planted.Mutants()), args[:1])
		if err != nil {
			return err
		}
		path, err := bugs[0].Overlay(".", args[1], nil)
		fmt.Println(path)
		return err
	case "tests", "mutants", "hunt":
	default:
		return fmt.Errorf("there is no %q: want list, tests, mutants, hunt or overlay", command)
	}
	flags := flag.NewFlagSet(command, flag.ContinueOnError)
	dir := flags.String("dir", "", "keep binaries, logs and records in this `folder`")
	hunt := hunter{Postgres: flags.String("postgres", "15", "version of PostgreSQL, 15 or 18"), Report: flags.String("o", "", "a page, to whose table the outcome is added: a `file`")}
	if err := flags.Parse(args); err != nil {
		return err
	}
	all := planted.All()
	if command == "mutants" {
		all = planted.Mutants()
	}
	bugs, err := choose(all, flags.Args())
	if err != nil {
		return err
	}
	if *dir == "" {
		if *dir, err = os.MkdirTemp("", "planted"); err != nil {
			return err
		}
		defer os.RemoveAll(*dir)
	}
	if err := os.MkdirAll(*dir, 0o755); err != nil {
		return err
	}
	switch command {
	case "tests":
		return byTests(ctx, bugs, *dir)
	case "mutants":
		return kill(ctx, bugs, *dir)
	}
	hunt.dir = *dir
	return hunt.all(ctx, bugs)
}

// choose returns the bugs with the given IDs, or all.
func choose(all []planted.Bug, ids []string) ([]planted.Bug, error) {
	if len(ids) == 0 {
		return all, nil
	}
	var chosen []planted.Bug
	for _, id := range ids {
		i := slices.IndexFunc(all, func(b planted.Bug) bool { return strings.EqualFold(b.ID, id) })
		if i < 0 {
			return nil, fmt.Errorf("there is no bug %s", id)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

func list() {
	for _, b := range slices.Concat(planted.All(), planted.Mutants()) {
		fmt.Printf("%s  %s\n     %s\n", b.ID, b.Name, b.Does)
		if len(b.Hunt.To) > 0 {
			fmt.Printf("     breaks %s with %s\n", strings.Join(b.Breaks, ", "), b.Hunt)
		}
		for _, t := range b.Tests {
			fmt.Printf("     fails %s -run '%s'\n", t.Package, t.Run)
		}
	}
}
