package fault_test

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var processChecks = map[string]func(s *scene){
	"relay-kill":      func(s *scene) { s.replaced("relay-kill") },
	"relay-stop":      func(s *scene) { s.replaced("relay-stop") },
	"producer-kill":   func(s *scene) { s.replaced("producer-kill") },
	"consumer-kill":   func(s *scene) { s.replaced("consumer-kill") },
	"receiver-kill":   func(s *scene) { s.replaced("receiver-kill") },
	"relay-pause":     func(s *scene) { s.held("relay-pause") },
	"consumer-pause":  func(s *scene) { s.held("consumer-pause") },
	"rolling-upgrade": (*scene).upgraded,
	"relay-clock":     (*scene).skewed,
	"relay-memory":    (*scene).limited,
}

func (s *scene) pids() map[string]int {
	pids := map[string]int{}
	for _, p := range s.Sample(s.Context()) {
		pids[p.Name] = p.PID
	}
	return pids
}

// replaced checks that a process is gone, and another one takes its place.
func (s *scene) replaced(kind string) {
	s.Helper()
	before := s.pids()
	r := s.begin(kind, "")
	p := s.Process(r.Target)
	if p.PID() != 0 {
		s.Fatalf("%s still runs", r.Target)
	}
	s.heal(r)
	if pid := p.PID(); pid == 0 || pid == before[r.Target] {
		s.Fatalf("%s is process %d, was %d", r.Target, pid, before[r.Target])
	}
}

// held checks that a process is suspended, and resumes.
func (s *scene) held(kind string) {
	s.Helper()
	before := s.pids()
	r := s.begin(kind, "")
	p := s.Process(r.Target)
	s.eventually(r.Target+" stands still", func() bool { return stopped(p.PID()) && p.Paused() })
	s.heal(r)
	s.eventually(r.Target+" goes on", func() bool { return !stopped(p.PID()) && p.PID() == before[r.Target] })
}

func (s *scene) upgraded() {
	s.Helper()
	for _, want := range []string{s.Options.Older, s.Options.Postrider} {
		if want == "" {
			want = s.Options.Postrider
		}
		before := s.pids()
		r := s.begin("rolling-upgrade", "")
		for _, p := range s.Relays() {
			if p.Path() != want || p.PID() == before[p.Name()] {
				s.Errorf("%s is process %d of %s", p.Name(), p.PID(), p.Path())
			}
		}
		s.heal(r)
	}
}

// skewed checks that the relay's clock is wrong.
func (s *scene) skewed() {
	s.Helper()
	r := s.begin("relay-clock", "")
	defer s.heal(r)
	s.eventually("the relay writes a wrong time", func() bool {
		at := s.lastWords(r.Target)
		return !at.IsZero() && time.Since(at).Abs() > 50*time.Minute
	})
}

// limited checks that a relay runs with a limit, and without it afterwards.
func (s *scene) limited() {
	s.Helper()
	has := func(relay string) bool {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.Process(relay).PID()))
		if err != nil {
			s.Fatal(err)
		}
		return strings.Contains(string(text), "GOMEMLIMIT=")
	}
	r := s.begin("relay-memory", "")
	if !has(r.Target) {
		s.Errorf("%s has no limit", r.Target)
	}
	s.heal(r)
	if has(r.Target) {
		s.Errorf("%s still has a limit", r.Target)
	}
}

// lastWords returns the time of the last line in a relay's log.
func (s *scene) lastWords(relay string) (at time.Time) {
	f, err := os.Open(filepath.Join(s.Options.Dir, relay+".log"))
	if err != nil {
		s.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		_, rest, _ := strings.Cut(lines.Text(), "time=")
		text, _, _ := strings.Cut(rest, " ")
		if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
			at = t
		}
	}
	return at
}
