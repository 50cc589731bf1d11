package lease_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/postrider/postrider/broker/internal/lease"
)

const length = 10 * time.Second

// server is a broker with one lease, either with versions or with its own expiry.
type server struct {
	versions bool

	mu      sync.Mutex
	owner   string
	version int
	expires time.Time
	down    bool
}

func (s *server) free(owner string) bool {
	return s.owner == "" || s.owner == owner || !s.versions && !time.Now().Before(s.expires)
}

func (s *server) set(owner string) {
	s.owner = owner
	s.version++
	s.expires = time.Now().Add(length)
}

// store is one process's connection to the server. Requests and answers take time, and some are
// lost.
type store struct {
	server *server
	owner  string
	delay  func() time.Duration // nil means no delay
	loses  func() bool          // nil means no loss

	mu   sync.Mutex
	seen int
}

var errNoAnswer = errors.New("no answer")

// call does something at the server, immediately or later, even if the caller no longer waits for
// it.
func (s *store) call(ctx context.Context, do func()) error {
	if s.server.isDown() {
		return errNoAnswer
	}
	answer := make(chan struct{})
	go func() {
		if s.delay != nil {
			time.Sleep(s.delay())
		}
		if s.loses != nil && s.loses() {
			return
		}
		s.server.mu.Lock()
		do()
		s.server.mu.Unlock()
		if s.delay != nil {
			time.Sleep(s.delay())
		}
		if s.loses == nil || !s.loses() {
			close(answer)
		}
	}()
	select {
	case <-answer:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *server) isDown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down
}

func (s *store) Look(ctx context.Context) (sight lease.Sight, err error) {
	var got lease.Sight
	seen := 0
	err = s.call(ctx, func() {
		got.Free = s.server.free(s.owner)
		if seen = s.server.version; s.server.versions {
			got.Version = fmt.Sprint(seen)
		}
	})
	if err != nil {
		return sight, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = seen
	return got, nil
}

func (s *store) Take(ctx context.Context) (ok bool, err error) {
	s.mu.Lock()
	seen := s.seen
	s.mu.Unlock()
	return s.change(ctx, func() bool {
		if s.server.versions {
			return s.server.version == seen
		}
		return s.server.free(s.owner)
	}, s.owner)
}

func (s *store) Renew(ctx context.Context) (bool, error) {
	return s.change(ctx, func() bool {
		return s.server.owner == s.owner && (s.server.versions || time.Now().Before(s.server.expires))
	}, s.owner)
}

func (s *store) Release(ctx context.Context) error {
	_, err := s.change(ctx, func() bool { return s.server.owner == s.owner }, "")
	return err
}

func (s *store) change(ctx context.Context, may func() bool, owner string) (bool, error) {
	var done bool
	err := s.call(ctx, func() {
		if done = may(); done {
			s.server.set(owner)
		}
	})
	if err != nil {
		return false, err
	}
	return done, nil
}

var cfg = lease.Config{Length: length, Name: "test", Logger: slog.New(slog.DiscardHandler)}

// process is a running process and the state of its lease.
type process struct {
	mu    sync.Mutex
	term  *lease.Term
	terms int
	stop  func()
}

// start starts a process whose handlers need the given time to return.
func start(t *testing.T, s *store, drain time.Duration) *process {
	ctx, cancel := context.WithCancel(t.Context())
	p := &process{}
	var run sync.WaitGroup
	run.Go(func() {
		lease.Run(ctx, s, cfg, func(ctx context.Context, term *lease.Term) {
			p.mu.Lock()
			p.term = term
			p.terms++
			p.mu.Unlock()
			<-ctx.Done()
			time.Sleep(drain)
		})
	})
	p.stop = func() {
		cancel()
		run.Wait()
	}
	t.Cleanup(p.stop)
	return p
}

func (p *process) works() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.term != nil && p.term.Valid()
}

func both(t *testing.T, test func(t *testing.T, s *server)) {
	for name, versions := range map[string]bool{"versions": true, "ends by itself": false} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { test(t, &server{versions: versions}) }) })
	}
}

// TestStandsBy checks that one of three processes works, for as long as it lives.
func TestStandsBy(t *testing.T) {
	both(t, func(t *testing.T, s *server) {
		first := start(t, &store{server: s, owner: "a"}, 0)
		synctest.Wait()
		second := start(t, &store{server: s, owner: "b"}, 0)
		third := start(t, &store{server: s, owner: "c"}, 0)
		for range 10_000 {
			time.Sleep(time.Second / 10)
			if !first.works() || second.works() || third.works() {
				t.Fatalf("%v, %v, %v work", first.works(), second.works(), third.works())
			}
		}
		if first.terms != 1 {
			t.Errorf("%d terms", first.terms)
		}
	})
}

// TestStop checks that the lease is handed over as soon as the handlers have returned, but not
// before.
func TestStop(t *testing.T) {
	both(t, func(t *testing.T, s *server) {
		const drain = 3 * length
		first := start(t, &store{server: s, owner: "a"}, drain)
		synctest.Wait()
		second := start(t, &store{server: s, owner: "b"}, 0)
		time.Sleep(time.Minute)
		go first.stop()
		time.Sleep(drain - time.Millisecond)
		if second.works() {
			t.Error("the next one works while handlers of the last are at work")
		}
		time.Sleep(time.Second)
		if !second.works() {
			t.Error("the next one does not work")
		}
		second.stop()
		if s.owner != "" {
			t.Errorf("%s has the lease in the end", s.owner)
		}
	})
}

// TestSilence checks that a silent process is replaced one lease after its last renewal, and not
// before its own lease is over.
func TestSilence(t *testing.T) {
	both(t, func(t *testing.T, s *server) {
		silent := false
		var mu sync.Mutex
		a := &store{server: s, owner: "a", loses: func() bool { mu.Lock(); defer mu.Unlock(); return silent }}
		first := start(t, a, 0)
		synctest.Wait()
		second := start(t, &store{server: s, owner: "b"}, 0)
		time.Sleep(time.Minute)
		mu.Lock()
		silent = true
		mu.Unlock()
		begin := time.Now()
		for !second.works() {
			time.Sleep(time.Millisecond)
			if second.works() && first.works() {
				t.Fatal("both work")
			}
		}
		if took := time.Since(begin); took < length*3/4 || took > length+2*time.Second {
			t.Errorf("taken over after %v", took)
		}
		mu.Lock()
		silent = false
		mu.Unlock()
		time.Sleep(time.Minute)
		if first.works() || !second.works() {
			t.Error("the old owner has taken the lease back")
		}
	})
}

// TestOutage checks that the lease is lost if the broker is unavailable for longer than its length,
// and then taken again.
func TestOutage(t *testing.T) {
	both(t, func(t *testing.T, s *server) {
		p := start(t, &store{server: s, owner: "a"}, 0)
		for _, c := range []struct {
			length time.Duration
			terms  int
		}{{length / 2, 1}, {2 * length, 2}} {
			time.Sleep(time.Minute)
			s.mu.Lock()
			s.down = true
			s.mu.Unlock()
			time.Sleep(c.length)
			if works := p.works(); works != (c.length < length) {
				t.Errorf("after an outage of %v it works: %v", c.length, works)
			}
			s.mu.Lock()
			s.down = false
			s.mu.Unlock()
			time.Sleep(time.Second)
			if !p.works() || p.terms != c.terms {
				t.Errorf("works: %v, %d terms", p.works(), p.terms)
			}
		}
	})
}

// TestNeverTwo simulates a network that delays and loses requests and answers, and processes that
// come and go.
func TestNeverTwo(t *testing.T) {
	for seed := range uint64(10) {
		for _, versions := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				t.Cleanup(func() { time.Sleep(2 * length) }) // let delayed requests arrive
				random := rand.New(rand.NewPCG(seed, 1))
				var mu sync.Mutex
				n := func(most time.Duration) time.Duration {
					mu.Lock()
					defer mu.Unlock()
					return time.Duration(random.Int64N(int64(most)))
				}
				bad := false
				isBad := func() bool { mu.Lock(); defer mu.Unlock(); return bad }
				s := &server{versions: versions}
				name := 0
				next := func() *process {
					name++
					return start(t, &store{
						server: s, owner: fmt.Sprint(name),
						delay: func() time.Duration {
							if isBad() {
								return n(length)
							}
							return n(10 * time.Millisecond)
						},
						loses: func() bool { return isBad() && n(4) == 0 },
					}, n(2*length))
				}
				all := []*process{next(), next(), next()}
				everyone := slices.Clone(all)
				idle, longest := time.Duration(0), time.Duration(0)
				const tick = 50 * time.Millisecond
				for step := range 12_000 { // ten minutes
					time.Sleep(tick)
					switch {
					case step%600 == 599:
						mu.Lock()
						bad = !bad
						mu.Unlock()
					case step%1000 == 999:
						go all[0].stop()
						all = append(all[1:], next())
						everyone = append(everyone, all[2])
					}
					working := 0
					for _, p := range everyone {
						if p.works() {
							working++
						}
					}
					if working > 1 {
						t.Fatalf("seed %d: %d work", seed, working)
					}
					if idle += tick; working == 1 || isBad() {
						idle = 0
					}
					longest = max(longest, idle)
				}
				if longest > 4*length { // a drain of two, a lease, and late answers
					t.Errorf("seed %d: nobody worked for %v though the network was good", seed, longest)
				}
			})
		}
	}
}

// TestPure checks that core.go, which holds the decisions, contains nothing else.
func TestPure(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "core.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Imports) != 1 || file.Imports[0].Path.Value != `"time"` {
		t.Errorf("it imports more than time")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			t.Error("it starts a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && !strings.Contains("Time Duration Second", n.Sel.Name) {
				t.Errorf("it uses time.%s", n.Sel.Name)
			}
		}
		return true
	})
}
