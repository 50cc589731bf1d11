package points

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/postrider/postrider/internal/need"
	"github.com/postrider/postrider/test/proof/points/tap"
)

var (
	update = flag.Bool("update", false, "write testdata/points.txt again")
	only   = flag.String("scenario", "", "play this one only")
)

const listed = "testdata/points.txt"

// atOnce is how many cases run concurrently. Most of a case is waiting.
const atOnce = 12

func scenarios(t *testing.T, s *servers) []*scenario {
	counter, agencies := s.counter(t), s.agencies(t)
	return []*scenario{
		sliceScenario(s), // the longest one
		suspectScenario(s),
		relayScenario(s, "relay", s.stream),
		relayScenario(s, "relay to RabbitMQ", s.queue),
		refusedScenario(s, "relay with a refused message", s.stream, func(*part) {}),
		refusedScenario(s, "relay to RabbitMQ with a refused message", s.queue, func(p *part) {
			p.Only, p.Limits = true, map[string]int{"publish": 3, "look at the queue": 1, "deferred": 1, "conclude": 1, "balance": 2}
		}),
		reclaimScenario(s),
		inboxScenario("inbox", counter, s.stream),
		inboxScenario("inbox from RabbitMQ", counter, s.queue),
		deferScenario(counter, s.stream),
		batchScenario(counter, s.stream),
		sagaScenario("saga", agencies, "", map[string]int{"begin": 6, "take a step": 4}),
		sagaScenario("saga that is undone", agencies, fails+"car", map[string]int{"begin": 8, "take a step": 6}),
		sagaScenario("saga that loses a connection", agencies, breaks+"flight",
			map[string]int{"begin": 0, "take a step": 3, "hold a step": 1, "lock": 3, "save": 3, "commit after: save": 3, "savepoint after: take a step": 3,
				"write the effect": 1}),
		replayScenario(s, "replay", func(*part) {}),
		replayScenario(s, "replay of dead letters", func(p *part) { p.Dead = true }),
		replayScenario(s, "replay that is paused", func(p *part) { p.Pauses = true }),
		replayScenario(s, "retry of dead letters", func(p *part) { p.Acts = true }),
	}
}

// TestPoints runs every scenario without a fault, compares its points with the list, and then
// injects faults at every one of them.
func TestPoints(t *testing.T) {
	need.Alone(t, "plays twelve cases at a time, with leases that a busy machine lets lapse")
	s := connect(t)
	all := slices.DeleteFunc(scenarios(t, s), func(sc *scenario) bool { return *only != "" && *only != sc.name })
	want := readList(t)
	limit := make(chan struct{}, atOnce)
	var played sync.WaitGroup
	var mu sync.Mutex
	got := make(map[string]map[string]int)
	hits := make(map[string]bool)
	count := 0
	play := func(sc *scenario, name, point string, way tap.Way, then func(first, second map[string]int)) {
		limit <- struct{}{}
		played.Go(func() {
			defer func() { <-limit }()
			t.Run(name, func(t *testing.T) {
				first, second := sc.play(t, point, way)
				mu.Lock()
				defer mu.Unlock()
				then(first, second)
			})
		})
	}
	for _, sc := range all {
		play(sc, sc.name, "", "", func(first, _ map[string]int) { got[sc.name] = first })
	}
	if *update && *only == "" {
		played.Wait()
		if !t.Failed() {
			writeList(t, got)
		}
		return
	}
	for _, sc := range all {
		for _, point := range want.points(sc.name) {
			for _, way := range chosen(sc.name, point) {
				play(sc, fmt.Sprintf("%s/%s/%s", sc.name, point, way), point, way, func(first, second map[string]int) {
					hits[sc.name+"/"+point] = true
					count++
					for _, passed := range []map[string]int{first, second} {
						for name := range passed {
							if !want.has(name) && name != inDoubt {
								t.Errorf("%s, %s at %s: %q is in no scenario in which nothing goes wrong", sc.name, way, point, name)
							}
						}
					}
				})
			}
		}
	}
	played.Wait()
	for _, sc := range all {
		compare(t, sc.name, want[sc.name], got[sc.name])
		for _, point := range want.points(sc.name) {
			if len(chosen(sc.name, point)) > 0 && !hits[sc.name+"/"+point] {
				t.Errorf("%s: %s: no case has hit the point, or it has failed", sc.name, point)
			}
		}
	}
	t.Logf("%d cases at %d points", count, len(hits))
}

// everyWay lists points that get all faults in every run.
var everyWay = map[string][]string{
	"relay":             {"publish 1", "settle 1", "read the log 1"},
	"relay to RabbitMQ": {"publish 1"},
	"inbox":             {"claim one 1", "commit after: write the effect 1", "ack 1"},
	"saga":              {"commit after: save 1"},
	"replay":            {"step 1", "commit after: step 1"},
}

// chosen returns the faults for a point: all or none, and all in the long tier.
func chosen(scenario, point string) []tap.Way {
	if need.IsLong() || slices.Contains(everyWay[scenario], point) {
		return tap.Ways
	}
	return nil
}

// compare compares the points of a run without a fault with the list.
func compare(t *testing.T, scenario string, want, got map[string]int) {
	t.Helper()
	// Reports come at unpredictable times: a scenario may end before one, and a broker that fails
	// once on a busy machine is reported too.
	const report = "report"
	for name, n := range want {
		if got[name] < n && name != report {
			t.Errorf("%s: %q is listed %d times, and was hit %d times", scenario, name, n, got[name])
		}
	}
	for name, n := range got {
		if want[name] < n && name != report {
			t.Errorf("%s: %q was hit %d times, and is listed %d times; if that is intended: go test ./proof/points -update", scenario, name, n, want[name])
		}
	}
}

// points lists how many calls of each name are points, by scenario.
type points map[string]map[string]int

// points returns the points of a scenario, each with its number.
func (p points) points(scenario string) (all []string) {
	for _, name := range slices.Sorted(maps.Keys(p[scenario])) {
		for n := range p[scenario][name] {
			all = append(all, fmt.Sprintf("%s %d", name, n+1))
		}
	}
	return all
}

// has reports whether a name is in any scenario. A transaction may end after any statement.
func (p points) has(name string) bool {
	if _, statement, ends := strings.Cut(name, " after: "); ends {
		name = statement
	}
	for _, names := range p {
		if names[name] > 0 {
			return true
		}
	}
	return false
}

func readList(t *testing.T) points {
	t.Helper()
	all := make(points)
	f, err := os.Open(listed)
	if os.IsNotExist(err) && *update {
		return all
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		words := strings.Split(lines.Text(), "\t")
		if strings.HasPrefix(lines.Text(), "#") || len(words) != 3 {
			continue
		}
		n, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatal(err)
		}
		if all[words[0]] == nil {
			all[words[0]] = make(map[string]int)
		}
		all[words[0]][words[1]] = n
	}
	return all
}

func writeList(t *testing.T, all points) {
	t.Helper()
	var b strings.Builder
	b.WriteString("# Scenario, name and number of the points; go test ./proof/points -update writes it.\n")
	for _, scenario := range slices.Sorted(maps.Keys(all)) {
		for _, name := range slices.Sorted(maps.Keys(all[scenario])) {
			fmt.Fprintf(&b, "%s\t%s\t%d\n", scenario, name, all[scenario][name])
		}
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(listed, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
