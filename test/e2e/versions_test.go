package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/store/postgres"
	"github.com/postrider/postrider/store/postgres/pgtest"
	"github.com/postrider/postrider/test/built"
	"github.com/postrider/postrider/test/proof/history"
	"github.com/postrider/postrider/test/proof/planted"
)

// TestVersions checks that programs and tables one version apart work together, in both directions
// and under load. Relays of two programs are restarted at random while the tables are migrated to
// the next version, back, and to a third that needs the newer program. No message is lost,
// invented, reordered or sent twice, no process ends by itself, and a program that is too old
// reports which database needs a newer one.
func TestVersions(t *testing.T) {
	need.Alone(t, "takes leases of a second or two, which a busy machine lets lapse")
	programs := [2]string{built.Program(t, "cmd/postrider"), nextRelease(t)}
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		s := newScene(t, dsn, postgres.Layout{})
		v := &versions{scene: s, programs: programs, config: filepath.Join(t.TempDir(), "postrider.yaml")}
		v.writeConfig()
		writers := s.write(history.Plan{Writers: 4, Keys: 100, Pause: 20 * time.Millisecond, Pauses: 0.5, Bulk: 4})
		v.relays = []*daemon{v.start(thisRelease), v.start(theNext)}
		v.awaitHolder(v.relays[0])
		v.awaitHolder(v.relays[1])
		restarts := 6
		if need.IsLong() {
			restarts = 60
		}

		v.restart(restarts) // both programs, older tables
		v.run(theNext, "migrate", "up")
		v.restart(restarts) // both programs, newer tables
		v.run(thisRelease, "migrate", "up")
		v.mustHave(2, 2) // an older program migrates nothing back
		v.run(theNext, "migrate", "down", "--to", "1", "--yes")
		v.run(thisRelease, "migrate", "up")
		v.mustHave(1, 1)
		v.restart(restarts)
		v.run(theNext, "migrate", "up")

		// A version that removes what the older program needs.
		v.exec("INSERT INTO @.migrations (version, needs) VALUES (3, 2)")
		v.stop(0)
		waits := v.start(thisRelease)
		v.relays[0] = waits
		s.tryEventually(func() error {
			log := waits.log(t)
			if !strings.Contains(log, "database=app") || !strings.Contains(log, "needs a program that knows version 2; this one knows 1: use a newer program") {
				return fmt.Errorf("it does not say what it waits for:\n%s", log)
			}
			return nil
		})
		v.exec("DELETE FROM @.migrations WHERE version = 3")
		v.awaitHolder(waits)

		writers.Stop()
		if n := writers.Errors(); n > 0 {
			t.Errorf("%d transactions failed", n)
		}
		var verdict history.Verdict
		s.eventually(20*time.Second, func() bool { verdict = s.check(v.arrived()); return len(verdict.Lost) == 0 })
		v.stop(0)
		v.stop(1)
		verdict = s.check(v.arrived())
		t.Logf("%d restarts with each of %d tables: %s", restarts, 3, verdict)
		if !verdict.Clean() || len(verdict.Duplicates) > 0 {
			t.Errorf("want no fault and no duplicate: %s", verdict)
		}
	})
}

// The two programs.
const (
	thisRelease = iota
	theNext
)

// nextRelease builds the next version of the program: its tables have one more column, which its
// functions write.
func nextRelease(t *testing.T) string {
	t.Helper()
	root, folder := "../..", t.TempDir()
	added := map[string]string{
		"002.sql":      "ALTER TABLE @schema@.members ADD COLUMN program text;\n",
		"002.down.sql": "ALTER TABLE @schema@.members DROP COLUMN program;\n",
	}
	others := make(map[string]string)
	for name, text := range added {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		stands, err := filepath.Abs(filepath.Join(root, "store/postgres/sql/schema", name))
		if err != nil {
			t.Fatal(err)
		}
		others[stands] = path
	}
	release := planted.Bug{ID: "the next release", Plant: []planted.Change{
		{File: "store/postgres/migrate.go", Old: "var needs = []int{1}", New: "var needs = []int{1, 1}"},
		{File: "store/postgres/migrate.go", Old: "functionsVersion = 1", New: "functionsVersion = 2"},
		{
			File: "store/postgres/sql/functions/relay.sql",
			Old: "(feed, member, name, until)\n      VALUES (feed_name, member_id, member_name, clock_timestamp() + lease);\n" +
				"  END IF;\n\n",
			New: "(feed, member, name, until, program)\n      VALUES (feed_name, member_id, member_name, clock_timestamp() + lease, 'next');\n" +
				"  END IF;\n\n",
		},
	}}
	overlay, err := release.Overlay(root, folder, others)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "postrider-next")
	build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", path, "./cmd/postrider")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

type versions struct {
	*scene
	programs [2]string
	config   string
	relays   []*daemon
	started  int
}

// daemon is a process of postrider relay.
type daemon struct {
	*exec.Cmd
	name   string
	stderr string // a file
	ended  chan struct{}
}

func (d *daemon) log(t *testing.T) string {
	text, err := os.ReadFile(d.stderr)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (v *versions) writeConfig() {
	v.t.Helper()
	text := fmt.Sprintf("databases: {app: {url: %q, schema: %s}}\ndestinations: {lines: {url: \"stdout:\"}}\n"+
		"feeds: {default: {relay: {lease: 3s, balance_interval: 200ms}}}\n", v.dsn, v.cfg.Schema)
	if err := os.WriteFile(v.config, []byte(text), 0o600); err != nil {
		v.t.Fatal(err)
	}
}

// start starts a relay that appends to the common file: the order of its lines is the order of
// deliveries.
func (v *versions) start(program int) *daemon {
	v.t.Helper()
	v.started++
	d := &daemon{name: fmt.Sprintf("relay%d", v.started), ended: make(chan struct{})}
	d.stderr = filepath.Join(filepath.Dir(v.config), d.name+".log")
	d.Cmd = exec.CommandContext(v.t.Context(), v.programs[program], "relay", "--config", v.config, "--name", d.name)
	out, err := os.OpenFile(v.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		v.t.Fatal(err)
	}
	defer out.Close()
	messages, err := os.Create(d.stderr)
	if err != nil {
		v.t.Fatal(err)
	}
	defer messages.Close()
	d.Stdout, d.Stderr = out, messages
	if err := d.Start(); err != nil {
		v.t.Fatal(err)
	}
	go func() {
		defer close(d.ended)
		_ = d.Wait() // its state is checked later
	}()
	return d
}

// stop stops the relay at a place cleanly. It must not have ended before.
func (v *versions) stop(place int) {
	v.t.Helper()
	d := v.relays[place]
	select {
	case <-d.ended:
		v.t.Fatalf("%s has ended by itself: %s\n%s", d.name, d.ProcessState, d.log(v.t))
	default:
	}
	if err := d.Process.Signal(syscall.SIGTERM); err != nil {
		v.t.Fatal(err)
	}
	<-d.ended
	if code := d.ProcessState.ExitCode(); code != 0 {
		v.t.Fatalf("%s has ended with exit code %d\n%s", d.name, code, d.log(v.t))
	}
}

// restart restarts relays at random, with the two programs in turn, and waits until they deliver.
func (v *versions) restart(times int) {
	v.t.Helper()
	for n := range times {
		place := rand.IntN(len(v.relays))
		v.stop(place)
		time.Sleep(rand.N(300 * time.Millisecond))
		v.relays[place] = v.start(n % 2)
		v.awaitHolder(v.relays[place])
	}
}

func (v *versions) awaitHolder(d *daemon) {
	v.t.Helper()
	v.tryEventually(func() error {
		if held := v.owners(); held[d.name] == 0 {
			return fmt.Errorf("%s holds no shard: %v\n%s", d.name, held, d.log(v.t))
		}
		return nil
	})
}

func (v *versions) run(program int, args ...string) {
	v.t.Helper()
	cmd := exec.CommandContext(v.t.Context(), v.programs[program], append(args, "--database", "app")...)
	cmd.Env = append(os.Environ(), "POSTRIDER_CONFIG="+v.config)
	if out, err := cmd.CombinedOutput(); err != nil {
		v.t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

func (v *versions) exec(sql string) {
	v.t.Helper()
	if _, err := v.pool.Exec(v.t.Context(), strings.ReplaceAll(sql, "@.", v.cfg.Schema+"."), pgx.QueryExecModeExec); err != nil {
		v.t.Fatal(err)
	}
}

func (v *versions) mustHave(tables, functions int) {
	v.t.Helper()
	var has [2]int
	v.ask("SELECT max(version) FROM @.migrations", &has[0])
	v.ask("SELECT version FROM @.functions_version()", &has[1])
	if has != [2]int{tables, functions} {
		v.t.Fatalf("tables and functions have versions %v, want %d and %d", has, tables, functions)
	}
}

// arrived returns what the relays have written, in its order.
func (v *versions) arrived() (all []history.Delivery) {
	v.t.Helper()
	file, err := os.Open(v.log)
	if err != nil {
		v.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		var m struct {
			ID      postrider.ID `json:"id"`
			Payload []byte       `json:"payloadBase64"`
		}
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			continue // being written
		}
		d := history.Delivery{ID: m.ID}
		if _, err := fmt.Sscanf(string(m.Payload), "%s %d", &d.Key, &d.N); err != nil {
			v.t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		all = append(all, d)
	}
	return all
}
