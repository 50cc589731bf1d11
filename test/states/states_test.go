package states_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/admin"
	"github.com/postrider/postrider/store/postgres/pgtest"
)

// TestStates runs the scripts of testdata.
func TestStates(t *testing.T) {
	scripts, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	runAll := func(t *testing.T, open func(t *testing.T) system) {
		for _, path := range scripts {
			t.Run(strings.TrimSuffix(filepath.Base(path), ".txt"), func(t *testing.T) {
				t.Parallel()
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				run(t, newScene(t, open(t)), path, string(text))
			})
		}
	}
	t.Run("memory", func(t *testing.T) { runAll(t, inMemory) })
	pgtest.Newest(t, func(t *testing.T, dsn string) {
		runAll(t, func(t *testing.T) system { return inPostgres(t, dsn) })
	})
}

func run(t *testing.T, s *scene, path, text string) {
	for i, line := range strings.Split(text, "\n") {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(command)
		if len(words) == 0 {
			continue
		}
		if err := s.do(words[0], words[1:]); err != nil {
			t.Fatalf("%s:%d: %s: %v", path, i+1, strings.TrimSpace(command), err)
		}
	}
}

// timeout is how long a statement may take until it holds.
const timeout = 30 * time.Second

func (s *scene) do(verb string, args []string) error {
	if verb == "refused" {
		if err := s.do(args[0], args[1:]); !errors.Is(err, admin.ErrRefused) {
			return fmt.Errorf("got %v, want a refusal", err) //nolint:errorlint // it may be nil
		}
		return nil
	}
	if act, ok := acts[verb]; ok {
		return act(s, expand(args))
	}
	busy := verb == "busy"
	if busy {
		verb, args = args[0], args[1:]
	}
	state, ok := statements[verb]
	if !ok {
		return errors.New("there is no such command")
	}
	got, want := "", ""
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); <-tick.C {
		if busy {
			if err := s.enqueue([]string{traffic}); err != nil {
				return err
			}
		}
		var err error
		if got, want, err = state(s, expand(args)); err != nil {
			return err
		}
		if got == want {
			return nil
		}
	}
	return fmt.Errorf("after %v\n got %s\nwant %s", timeout, got, want)
}

// expand expands ranges such as a1..a5.
func expand(args []string) []string {
	var all []string
	for _, arg := range args {
		from, to, ok := strings.Cut(arg, "..")
		if !ok {
			all = append(all, arg)
			continue
		}
		last, _ := strconv.Atoi(to[1:])
		for n, _ := strconv.Atoi(from[1:]); n <= last; n++ {
			all = append(all, from[:1]+strconv.Itoa(n))
		}
	}
	return all
}

// option removes "name=value" from the arguments.
func option(args []string, name, otherwise string) (value string, rest []string) {
	value = otherwise
	for _, arg := range args {
		if v, ok := strings.CutPrefix(arg, name+"="); ok {
			value = v
		} else {
			rest = append(rest, arg)
		}
	}
	return value, rest
}

// statements return the actual and the expected value.
var statements = map[string]func(s *scene, args []string) (got, want string, err error){
	"delivered": func(s *scene, args []string) (string, string, error) {
		feed, names := option(args, "feed", "default")
		_, got := s.arrivals(feed)
		return strings.Join(got, " "), strings.Join(sortByKey(names), " "), nil
	},
	"arrived": func(s *scene, args []string) (string, string, error) {
		feed, names := option(args, "feed", "default")
		got, _ := s.arrivals(feed)
		return strings.Join(got, " "), strings.Join(names, " "), nil
	},
	"status": (*scene).status,
	"blocked": func(s *scene, args []string) (string, string, error) {
		keys, err := s.admin.Blocked(s.t.Context(), "", 100)
		var got []string
		for _, k := range keys {
			got = append(got, fmt.Sprintf("%s+%d", s.nameOf(k.Head.ID), k.Waiting))
		}
		slices.Sort(got)
		return strings.Join(got, " "), strings.Join(args, " "), err
	},
	"shards": func(s *scene, args []string) (string, string, error) {
		n := 0
		for _, r := range s.relays {
			n += r.Stats().Shards
		}
		return strconv.Itoa(n), args[0], nil
	},
	"pending": func(s *scene, args []string) (string, string, error) {
		feeds, err := s.admin.ListFeeds(s.t.Context())
		n := 0
		for _, f := range feeds {
			n += f.Pending
		}
		return strconv.Itoa(n), args[0], err
	},
	"tries": func(s *scene, args []string) (string, string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		n, err := strconv.Atoi(args[1])
		return strconv.Itoa(min(n, len(s.tried[args[0]]))), args[1], err
	},
	"pauses": func(s *scene, args []string) (string, string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		at, got := s.tried[args[0]], []string{}
		for i, text := range args[1:] {
			pause, err := time.ParseDuration(text)
			if err != nil {
				return "", "", err
			}
			switch {
			case i+1 >= len(at):
				got = append(got, "none")
			case at[i+1].Sub(at[i]) < pause:
				got = append(got, at[i+1].Sub(at[i]).String())
			default:
				got = append(got, text)
			}
		}
		return strings.Join(got, " "), strings.Join(args[1:], " "), nil
	},
	"audit": func(s *scene, args []string) (string, string, error) {
		entries, err := s.admin.Audit(s.t.Context(), "", 0, 100)
		var got []string
		for _, e := range slices.Backward(entries) {
			if e.Action == "feed add" && e.Who != ann.Who {
				continue // the relay's first feed
			}
			got = append(got, e.Action)
			if e.Who != ann.Who || e.Why != ann.Why || e.At.IsZero() {
				err = errors.Join(err, fmt.Errorf("the record %+v", e))
			}
		}
		return strings.Join(got, ", "), strings.Join(args, " "), err
	},
}

func (s *scene) status(args []string) (got, want string, err error) {
	attempts, args := option(args, "attempts", "")
	word, args := option(args, "error", "")
	want = args[1]
	rows, err := s.admin.List(s.t.Context(), admin.Filter{ID: s.ids[args[0]]}, nil, 1)
	if err != nil || len(rows) == 0 {
		return "none", want, err
	}
	got = string(rows[0].Status)
	if attempts != "" {
		got, want = got+" after "+strconv.Itoa(rows[0].Attempts), want+" after "+attempts
	}
	if !strings.Contains(rows[0].LastError, word) {
		got += " for " + rows[0].LastError
	}
	return got, want, nil
}

func (s *scene) nameOf(id postrider.ID) string {
	for name, of := range s.ids {
		if of == id {
			return name
		}
	}
	return id.String()
}
