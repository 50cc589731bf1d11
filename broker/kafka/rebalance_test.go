package kafka

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/internal/need"
)

// memberEnv tells a process of this test that it is a member of the group, with its name and the
// topic.
const memberEnv = "POSTRIDER_KAFKA_MEMBER"

const (
	rebalanceKeys = 100
	slowKeys      = 4 // each of their messages takes two seconds
)

// TestOrderOverRebalances lets members join, leave and be killed under load. No member may handle
// messages of a partition that it has released, no two members may handle a key at the same time,
// and no message may overtake another of its key. Only when a partition changes hands may messages
// be redelivered, starting with one that was handled before.
func TestOrderOverRebalances(t *testing.T) {
	if spec := os.Getenv(memberEnv); spec != "" {
		beMember(t, spec)
	}
	t.Parallel()
	rounds := 1
	if need.IsLong() {
		rounds = 10
	}
	g := startGroup(t)
	for range rounds {
		g.publish(t, 0, slowKeys, 10) // a backlog that no member finishes before it must release its partition
		g.publish(t, slowKeys, rebalanceKeys, 10)
		g.join("a")
		g.wait(t, 2*time.Second)
		g.join("b")
		g.wait(t, 3*time.Second)
		g.join("c")
		g.wait(t, 3*time.Second)
		g.kill("c") // the others notice after the session timeout
		g.publish(t, slowKeys, rebalanceKeys, 10)
		g.leave("b")
		g.wait(t, 2*time.Second)
		g.join("d")
		g.wait(t, 2*time.Second)
		g.leave("a")
		g.publish(t, slowKeys, rebalanceKeys, 10)
	}
	g.join("e")
	g.finish(t)
	g.check(t)
}

// group runs members in separate processes. All report to one pipe, which preserves the order of
// their reports.
type group struct {
	t               *testing.T
	topic           string
	publisher       *Publisher
	reports, report *os.File
	members         map[string]*member
	sent            map[string]int // messages by key
	total           int

	mu      sync.Mutex
	lines   []string
	handled map[string]bool
}

type member struct {
	cmd  *exec.Cmd
	life io.Closer
}

func startGroup(t *testing.T) *group {
	g := &group{
		t: t, topic: newTopic(t, map[string]string{"partitions": "12"}), publisher: open1(t, Config{URL: "kafka://" + server(t)}),
		members: make(map[string]*member), sent: make(map[string]int), handled: make(map[string]bool),
	}
	var err error
	if g.report, g.reports, err = os.Pipe(); err != nil {
		t.Fatal(err)
	}
	var reading sync.WaitGroup
	reading.Go(func() {
		for lines := bufio.NewScanner(g.report); lines.Scan(); {
			g.mu.Lock()
			g.lines = append(g.lines, lines.Text())
			if rest, ok := strings.CutPrefix(lines.Text(), "end "); ok {
				_, call, _ := strings.Cut(rest, " ")
				g.handled[call] = true
			}
			g.mu.Unlock()
		}
	})
	t.Cleanup(func() {
		for name := range g.members {
			g.kill(name)
		}
		_ = g.reports.Close()
		reading.Wait()
		_ = g.report.Close()
	})
	return g
}

func (g *group) publish(t *testing.T, from, to, each int) {
	t.Helper()
	var msgs []postrider.Message
	for range each {
		for k := from; k < to; k++ {
			key := strconv.Itoa(k)
			msgs = append(msgs, parcel(g.topic, key, g.sent[key]))
			g.sent[key]++
			g.total++
		}
	}
	if _, _, err := insist(t.Context(), g.publisher, msgs, 500); err != nil {
		t.Fatal(err)
	}
}

func (g *group) join(name string) {
	if g.members[name] != nil {
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOrderOverRebalances$", "-test.timeout=15m")
	cmd.Env = append(os.Environ(), memberEnv+"="+name+" "+g.topic)
	cmd.ExtraFiles = []*os.File{g.reports}
	life, err := cmd.StdinPipe() // ends with this process, and the member with it
	if err != nil {
		g.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.members[name] = &member{cmd, life}
}

// leave lets a member stop gracefully.
func (g *group) leave(name string) {
	if m := g.members[name]; m != nil {
		_ = m.life.Close()
		_ = m.cmd.Wait()
		delete(g.members, name)
	}
}

func (g *group) kill(name string) {
	if m := g.members[name]; m != nil {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait()
		_ = m.life.Close()
		_, _ = fmt.Fprintf(g.reports, "killed %s\n", name)
		delete(g.members, name)
	}
}

// wait lets the members work for a while.
func (g *group) wait(t *testing.T, d time.Duration) {
	t.Helper()
	select {
	case <-time.After(d):
	case <-t.Context().Done():
	}
}

// finish waits while there is progress until every message is handled, and then lets all members
// leave.
func (g *group) finish(t *testing.T) {
	t.Helper()
	for handled, deadline := -1, time.Now(); ; {
		g.mu.Lock()
		now := len(g.handled)
		g.mu.Unlock()
		if now == g.total {
			break
		}
		if now != handled {
			handled, deadline = now, time.Now().Add(time.Minute)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d messages were handled", handled, g.total)
		}
		g.wait(t, 50*time.Millisecond)
	}
	for name := range g.members {
		g.leave(name)
	}
}

// partitionsOf returns the partition of each key.
func (g *group) partitionsOf(t *testing.T) map[string]int32 {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(server(t)), kgo.ConsumeTopics(g.topic))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	found := make(map[string]int32)
	for len(found) < rebalanceKeys && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
			_, key, _ := strings.Cut(string(r.Key), "/")
			found[key] = r.Partition
		})
	}
	return found
}

// check verifies what the members have reported.
func (g *group) check(t *testing.T) {
	t.Helper()
	type standing struct {
		period, last int // of the last call
		done         int // messages that were handled
		by           string
	}
	at := g.partitionsOf(t)
	owner, period := make(map[int32]string), make(map[int32]int)
	keys := make(map[string]*standing)
	for key := range at {
		keys[key] = &standing{last: -1}
	}
	calls, foreign, together, backwards, gaps, again, handovers := 0, 0, 0, 0, 0, 0, 0
	complain := func(count *int, line string, format string, args ...any) {
		if *count++; *count <= 5 {
			t.Errorf("%q: %s", line, fmt.Sprintf(format, args...))
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, line := range g.lines {
		word := strings.Fields(line)
		who := word[1]
		switch word[0] {
		case "assigned", "given-up":
			for _, text := range word[2:] {
				n, err := strconv.Atoi(text)
				if err != nil {
					t.Fatal(line)
				}
				p := int32(n)
				if word[0] == "assigned" {
					owner[p] = who
					period[p]++
					handovers++
				} else if owner[p] == who {
					delete(owner, p)
				}
			}
		case "killed":
			for _, k := range keys {
				if k.by == who {
					k.by = ""
				}
			}
		case "begin":
			key := word[2]
			n, _ := strconv.Atoi(word[3])
			k, now := keys[key], period[at[key]]
			calls++
			if owner[at[key]] != who {
				complain(&foreign, line, "partition %d is not this member's", at[key])
			}
			if k.by != "" {
				complain(&together, line, "member %s handles the key", k.by)
			}
			if k.period == now && n <= k.last {
				complain(&backwards, line, "came after %d", k.last)
			}
			if n > k.done {
				complain(&gaps, line, "only %d were handled before", k.done)
			} else if n < k.done {
				again++
			}
			k.period, k.last, k.by = now, n, who
		case "end", "interrupted":
			k := keys[word[2]]
			n, _ := strconv.Atoi(word[3])
			if k.by == who {
				k.by = ""
			}
			if word[0] == "end" {
				k.done = max(k.done, n+1)
			}
		}
	}
	t.Logf("%d calls for %d messages, %d assignments of partitions: %d by a member that had given the partition up, %d while another member handled the key, %d backwards, %d overtaking, %d of messages handled before",
		calls, g.total, handovers, foreign, together, backwards, gaps, again)
}

// beMember consumes until the process is killed or its standard input ends.
func beMember(t *testing.T, spec string) {
	name, topic, _ := strings.Cut(spec, " ")
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	reports := os.NewFile(3, "reports")
	c, err := NewConsumer(Config{URL: "kafka://" + server(t), Name: topic, Group: topic, Logger: slog.New(&reporter{name: name, to: reports})})
	if err != nil {
		t.Fatal(err)
	}
	err = c.Consume(ctx, func(ctx context.Context, m postrider.Message) error {
		call := fmt.Sprintf("%s %s %s", name, m.AggregateID, m.Payload)
		fmt.Fprintf(reports, "begin %s\n", call)
		pause := 5 * time.Millisecond
		if k, _ := strconv.Atoi(m.AggregateID); k < slowKeys {
			pause = 2 * time.Second
		}
		select {
		case <-time.After(pause):
			fmt.Fprintf(reports, "end %s\n", call)
			return nil
		case <-ctx.Done():
			fmt.Fprintf(reports, "interrupted %s\n", call)
			return ctx.Err()
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	os.Exit(0)
}

// reporter reports assigned and released partitions.
type reporter struct {
	slog.Handler

	name string
	to   io.Writer
}

func (r *reporter) Enabled(context.Context, slog.Level) bool { return true }

func (r *reporter) WithAttrs([]slog.Attr) slog.Handler { return r }

func (r *reporter) Handle(_ context.Context, rec slog.Record) error {
	what := map[string]string{"kafka: partitions assigned": "assigned", "kafka: partitions given up": "given-up"}[rec.Message]
	if what == "" {
		return nil
	}
	var numbers string
	rec.Attrs(func(a slog.Attr) bool {
		if a.Key == "partitions" {
			numbers = strings.Trim(fmt.Sprint(a.Value.Any()), "[]")
		}
		return true
	})
	_, err := fmt.Fprintf(r.to, "%s %s %s\n", what, r.name, numbers)
	return err
}
