package world

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/postrider/postrider/internal/port"
	"github.com/postrider/postrider/test/proof/campaign/proxy"
)

// World has all servers, proxies and processes of a campaign.
type World struct {
	Options Options

	services *services
	lock     *os.File
	place    string
	network  *network // nil if relays share the machine's
	database *database
	host     string // where proxies listen
	proxies  map[string]*proxy.Proxy
	receiver string   // address of the HTTP receiver
	health   []string // addresses of relays without a namespace
	token    string

	mu        sync.Mutex
	processes []*Process
	state     state
	poison    func(ctx context.Context, destination string, n int) error
	oversize  func(ctx context.Context, destination string) (taken bool, err error)
	load      func(ctx context.Context, l Load) (end func(context.Context) error, err error)
}

// Start starts servers and proxies, and creates an empty database with the schema of
// Options.Postrider. It first removes what an earlier world of the instance has left. Relays start
// with [World.StartRelays].
func Start(ctx context.Context, options Options) (*World, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	s, err := findServices()
	if err != nil {
		return nil, err
	}
	w := &World{
		Options: options, services: s, place: place(s.base, options.Instance), host: "127.0.0.1", token: rand.Text(),
		state:    state{Processes: map[int]string{}},
		database: &database{services: s, version: options.Postgres},
	}
	hurry()
	if w.lock, err = hold(s.base, options.Instance); err != nil {
		return nil, err
	}
	if err := w.build(ctx); err != nil {
		stopped, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return nil, errors.Join(err, w.Stop(stopped))
	}
	return w, nil
}

func (w *World) build(ctx context.Context) error {
	if err := clean(ctx, w.services, w.Options.Instance); err != nil {
		return fmt.Errorf("removing what an earlier world has left: %w", err)
	}
	if !w.Options.Plain {
		w.network = newNetwork(w.Options.Instance, w.Options.Relays)
		if err := w.network.build(ctx); err != nil {
			return err
		}
		w.host = w.network.host()
	}
	var err error
	if w.receiver, err = port.Free(); err != nil {
		return err
	}
	for range w.Options.Relays {
		address, err := port.Free()
		if err != nil {
			return err
		}
		w.health = append(w.health, address)
	}
	if err := w.listen(); err != nil {
		return err
	}
	if err := w.startServers(ctx); err != nil {
		return err
	}
	if err := w.connect(); err != nil {
		return err
	}
	_, err = w.Postrider(ctx, "migrate", "up", "--slots", "8", "--period", w.Options.Period.String(), "--inbox-window", "70m")
	return err
}

// startServers starts all servers in parallel: most of the time they wait.
func (w *World) startServers(ctx context.Context) error {
	start := []func() error{func() error { return w.startDatabase(ctx) }, func() error { return w.startPooler(ctx) }}
	for _, d := range w.destinations() {
		name, env := d, []string(nil)
		switch d {
		case HTTP:
			continue
		case NATS:
			name = "nats-cluster"
		case Kafka:
			env = []string{"POSTRIDER_KAFKA_PROXY=" + w.proxies[Kafka].Address()}
		}
		start = append(start, func() error { return w.services.run(ctx, env, "up", name+"@"+w.Options.Instance) })
	}
	errs := make([]error, len(start))
	var all sync.WaitGroup
	for i, s := range start {
		all.Go(func() { errs[i] = s() })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (w *World) startDatabase(ctx context.Context) error {
	var nodes []*node
	for _, instance := range []string{w.Options.Instance, w.Options.Instance + spare} {
		n := &node{service: "postgres" + w.Options.Postgres + "@" + instance}
		n.dir = w.services.dir(n.service)
		if !w.Options.Plain {
			var err error
			if n.image, err = newImage(ctx, filepath.Join(w.place, instance+".img"), n.dir, w.Options.ImageSize); err != nil {
				return err
			}
		}
		if err := w.database.create(ctx, n); err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	w.database.setRoles(nodes[0], nodes[1])
	return w.database.replicate(ctx, nodes[0], nodes[1])
}

// startPooler adds a database to PgBouncer that is behind a proxy.
func (w *World) startPooler(ctx context.Context) error {
	service := w.service(PgBouncer)
	if err := os.MkdirAll(w.services.dir(service), 0o755); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(w.proxies[ToPooler].Address())
	if err != nil {
		return err
	}
	line := fmt.Sprintf("campaign = host=%s port=%s dbname=postrider\n", host, port)
	if err := os.WriteFile(filepath.Join(w.services.dir(service), "databases"), []byte(line), 0o644); err != nil {
		return err
	}
	return w.services.run(ctx, nil, "up", service)
}

// Stop stops all processes and servers and removes their data. Logs stay in Options.Dir.
func (w *World) Stop(ctx context.Context) error {
	w.mu.Lock()
	processes := w.processes
	w.mu.Unlock()
	var errs []error
	for _, p := range processes {
		errs = append(errs, p.Kill())
	}
	errs = append(errs, w.closeProxies(), w.keepLogs(), clean(ctx, w.services, w.Options.Instance), w.lock.Close())
	return errors.Join(errs...)
}

// Postrider runs the binary as an operator would, on the primary, and returns its output.
func (w *World) Postrider(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, w.Options.Postrider, args...)
	cmd.Env = append(environment(), "DATABASE_URL="+w.AdminDSN())
	cmd.Dir = w.Options.Dir // no file there is mistaken for its configuration
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("postrider %v: %w\n%s%s", args, err, out, &said)
	}
	return string(out), err
}

// OnPoison sets the function that commits n messages that a destination must reject.
func (w *World) OnPoison(commit func(ctx context.Context, destination string, n int) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.poison = commit
}

// Poison commits n messages that a destination must reject.
func (w *World) Poison(ctx context.Context, destination string, n int) error {
	w.mu.Lock()
	commit := w.poison
	w.mu.Unlock()
	if commit == nil {
		return errors.New("nobody can write poison here")
	}
	return commit(ctx, destination, n)
}

// OnOversize sets the function that commits a message with a key that is too long.
func (w *World) OnOversize(commit func(ctx context.Context, destination string) (taken bool, err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oversize = commit
}

// Oversize commits a message to a destination whose key exceeds the limit, and reports whether the
// database has accepted it.
func (w *World) Oversize(ctx context.Context, destination string) (taken bool, err error) {
	w.mu.Lock()
	commit := w.oversize
	w.mu.Unlock()
	if commit == nil {
		return false, errors.New("nobody can write long keys here")
	}
	return commit(ctx, destination)
}

// The kinds of load.
const (
	HotKey          = "hot-key"          // most messages have one key, until the end
	BulkTransaction = "bulk-transaction" // one transaction, open until the end
	TenantFlood     = "tenant-flood"
	Foreign         = "foreign-messages"
)

// FloodTenant is the tenant of a flood.
const FloodTenant = "flood"

// Load is something unusual that producers do, or other services.
type Load struct {
	Kind        string
	Destination string
	Messages    int
	Commit      bool // how a bulk transaction ends
}

// OnLoad sets the function that begins a load. Its result ends it.
func (w *World) OnLoad(begin func(ctx context.Context, l Load) (end func(context.Context) error, err error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.load = begin
}

// Load begins a load.
func (w *World) Load(ctx context.Context, l Load) (end func(context.Context) error, err error) {
	w.mu.Lock()
	begin := w.load
	w.mu.Unlock()
	if begin == nil {
		return nil, errors.New("nobody produces here")
	}
	return begin(ctx, l)
}

// Answer sets the HTTP receiver's response: ok, 403, 404, 429, 500, 503, hang, redirect or slow; share is the
// percentage of affected keys, 0 for one key.
func (w *World) Answer(ctx context.Context, answer string, share int) error {
	return tell(ctx, "http://"+w.receiver, answer, share)
}

// Behave sets how the handlers of a consumer or of the receiver behave: ok, panic, hang or provider;
// share is the percentage of affected calls.
func (w *World) Behave(ctx context.Context, p *Process, manner string, share int) error {
	return tell(ctx, strings.TrimSuffix(p.program.Metrics, "/metrics"), manner, share)
}

func tell(ctx context.Context, address, answer string, share int) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	query := url.Values{"answer": {answer}, "share": {strconv.Itoa(share)}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/control?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return fmt.Errorf("the control of %s says %s", address, resp.Status)
	}
	return nil
}

// Destinations returns the destinations of this world.
func (w *World) Destinations() []string { return w.destinations() }

// Cut silently takes a relay off the network. With answersOnly what it sends still arrives.
func (w *World) Cut(ctx context.Context, relay int, answersOnly bool) error {
	if w.network == nil {
		return errors.New("relays have no network of their own")
	}
	return w.network.cut(ctx, relay, answersOnly)
}

// Join undoes a Cut.
func (w *World) Join(ctx context.Context, relay int, answersOnly bool) error {
	return w.network.join(ctx, relay, answersOnly)
}
