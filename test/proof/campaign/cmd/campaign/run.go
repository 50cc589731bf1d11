package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/postrider/postrider/test/proof/campaign/fault"
	"github.com/postrider/postrider/test/proof/campaign/oracle"
	"github.com/postrider/postrider/test/proof/campaign/record"
	"github.com/postrider/postrider/test/proof/campaign/world"
)

// options are the flags of a run.
type options struct {
	minutes   float64
	seed      int64
	faults    int
	postgres  string
	rate      float64
	calls     float64
	keys      int
	bulk      int
	to        string
	dir       string
	postrider string
	older     string
	skewed    string
	instance  string
	only      string
	without   string
	quiet     float64
	plain     bool
	keep      bool
	once      bool
	json      bool
	verbose   bool
}

func (o *options) register(flags *flag.FlagSet) {
	flags.Float64Var(&o.minutes, "minutes", 10, "how long faults happen; setting up and the end come on top")
	flags.Int64Var(&o.seed, "seed", 0, "decides what happens when; 0: by the clock")
	flags.IntVar(&o.faults, "faults", -1, "`number` of faults; -1: one every 9 seconds")
	flags.StringVar(&o.postgres, "postgres", "15", "version, 15 or 18")
	flags.Float64Var(&o.rate, "rate", 500, "messages a second")
	flags.Float64Var(&o.calls, "calls", 2, "calls with an idempotency key, and through the transactor, a second and process")
	flags.IntVar(&o.keys, "keys", 300, "keys of each destination")
	flags.IntVar(&o.bulk, "bulk", 20_000, "messages of a bulk transaction, up to a million; a machine needs time for them")
	flags.StringVar(&o.to, "destinations", strings.Join(world.Destinations(), ","), "only these `destinations`, with commas between")
	flags.StringVar(&o.dir, "dir", "", "`folder` for the files of the run; default: dist/campaign/RUN")
	flags.StringVar(&o.postrider, "postrider", "", "the `binary` that migrates and relays; default: postrider beside this one")
	flags.StringVar(&o.older, "older", "", "an earlier `binary`, for rolling upgrades")
	flags.StringVar(&o.skewed, "skewed", "", "a `binary` whose clock can be wrong")
	flags.StringVar(&o.instance, "instance", "campaign", "tells campaigns on one machine apart")
	flags.StringVar(&o.only, "only", "", "only these `kinds` of faults, with commas between")
	flags.StringVar(&o.without, "without", "", "all but these `kinds`")
	flags.Float64Var(&o.quiet, "quiet", 20, "`percent` of the time without any fault")
	flags.BoolVar(&o.plain, "plain", false, "leave out what only root can do: disk images and network namespaces")
	flags.BoolVar(&o.once, "once", false, "publish to Kafka in transactions; leave out kafka-kill and kafka-restart, after which a single server forgets to end some")
	flags.BoolVar(&o.keep, "keep", false, "leave servers and data as they are in the end, to look at them")
	flags.BoolVar(&o.json, "json", false, "print the verdict as JSON")
	flags.BoolVar(&o.verbose, "verbose", false, "say more")
}

// complete sets defaults, and reports invalid options.
func (o *options) complete(now time.Time) error {
	if o.seed == 0 {
		o.seed = now.UnixNano() % 1_000_000
	}
	if o.faults < 0 {
		o.faults = int(o.minutes * 60 / 9)
	}
	if o.dir == "" {
		o.dir = filepath.Join("dist", "campaign", fmt.Sprintf("%s-pg%s-seed%d", now.UTC().Format("20060102-150405"), o.postgres, o.seed))
	}
	if o.postrider == "" {
		self, err := os.Executable()
		if err != nil {
			return err
		}
		o.postrider = filepath.Join(filepath.Dir(self), "postrider")
	}
	if _, err := os.Stat(o.postrider); err != nil {
		return fmt.Errorf("%w: --postrider: %w", errUsage, err)
	}
	if o.minutes <= 0 || o.rate <= 0 || o.calls <= 0 || o.keys < 10 || o.bulk < 100 || o.bulk > 1_000_000 || o.quiet < 0 || o.quiet > 90 {
		return fmt.Errorf("%w: want more than 0 minutes, messages and calls, at least 10 keys, 100 to 1,000,000 messages in bulk, 0 to 90 percent of quiet", errUsage)
	}
	if chosen := len(world.Destinations()) - len(o.absent()); chosen == 0 || chosen != len(words(o.to)) {
		return fmt.Errorf("%w: --destinations: want some of %s", errUsage, strings.Join(world.Destinations(), ", "))
	}
	var err error
	o.dir, err = filepath.Abs(o.dir)
	return err
}

// hanging are kinds after which a single Kafka server may leave transactions open for ever: while no
// broker leads a partition, its coordinator skips that partition when it ends them. Consumers of
// committed messages then wait until an operator aborts them.
var hanging = []string{"kafka-kill", "kafka-restart"}

// kinds returns the selected kinds of faults.
func (o *options) kinds() ([]fault.Kind, error) {
	var chosen []fault.Kind
	known := map[string]bool{}
	only, without := words(o.only), words(o.without)
	for _, k := range fault.Kinds() {
		known[k.Name] = true
		if len(only) > 0 && !only[k.Name] || len(only) == 0 && k.Weight == 0 || without[k.Name] || o.once && slices.Contains(hanging, k.Name) {
			continue
		}
		chosen = append(chosen, k)
	}
	for _, set := range []map[string]bool{only, without} {
		for name := range set {
			if !known[name] {
				return nil, fmt.Errorf("%w: there is no fault %q; see: campaign faults", errUsage, name)
			}
		}
	}
	return chosen, nil
}

// absent returns the destinations that are not selected.
func (o *options) absent() []string {
	wanted := words(o.to)
	return slices.DeleteFunc(world.Destinations(), func(d string) bool { return wanted[d] })
}

func words(text string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || r == ' ' }) {
		set[word] = true
	}
	return set
}

func runCommand(ctx context.Context, args []string) error {
	var o options
	flags := newFlags("run [flags]")
	o.register(flags)
	others, err := parse(flags, args)
	if err != nil {
		return err
	}
	if len(others) > 0 {
		return fmt.Errorf("%w: what is %q?", errUsage, others[0])
	}
	if err := o.complete(time.Now()); err != nil {
		return err
	}
	kinds, err := o.kinds()
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	screen := newScreen(os.Stderr)
	defer screen.close()
	writer, err := record.Create(o.dir)
	if err != nil {
		return err
	}
	s := &stage{options: o, screen: screen, log: screen.logger(level), writer: writer}
	s.run = record.Run{ID: filepath.Base(o.dir), Seed: o.seed, Begin: time.Now(), Flags: set(flags)}
	s.run.Commit, s.run.Dirty = commit()
	ran := s.play(ctx, kinds)
	if ran != nil {
		s.log.Error("the campaign did not work", "err", ran)
	}
	if err := errors.Join(writer.Run(s.run), writer.Close()); err != nil {
		return errors.Join(ran, err)
	}
	screen.close()
	fmt.Fprintln(os.Stderr, "files:", o.dir)
	return errors.Join(ran, judge(o.dir, o.json))
}

// set returns the flags that were set.
func set(flags *flag.FlagSet) map[string]string {
	all := map[string]string{}
	flags.VisitAll(func(f *flag.Flag) { all[f.Name] = f.Value.String() })
	return all
}

// judge prints the verdict on the files of a run, and saves it beside them.
func judge(dir string, asJSON bool) error {
	verdict, err := oracle.Check(dir)
	if err != nil {
		return err
	}
	if err := verdict.Save(dir); err != nil {
		return err
	}
	if asJSON {
		err = printJSON(verdict)
	} else {
		_, err = fmt.Print(verdict)
	}
	if err == nil && len(verdict.Broken()) > 0 {
		err = errBroken
	}
	return err
}

// seconds formats a duration as seconds.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s" }
