package plan

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/postrider/postrider/cmd/postrider/internal/scale"
)

// measured is a machine with round figures: a message of 1000 bytes costs the server 200 µs, 50 of them for the business alone, and
// 1500 bytes of WAL; relays cost the server 100 µs a message, and 20 µs of their own, beside what polling costs.
func measured() *scale.Set {
	phase := func(rate, size float64, memberships int) scale.Phase {
		n := float64(memberships)
		return scale.Phase{
			Seconds: 10, Messages: int64(10 * rate), Published: int64(10 * rate),
			CPU: scale.CPU{
				Producers: 10 * rate * (100 + size/10) * 1e-6, Readers: 10 * (n*0.01 + rate*100e-6), Relays: 10 * (n*0.005 + rate*20e-6),
			},
			WAL:   int64(10 * (rate*(500+size) + n*1000)),
			Reads: int64(10 * (20*n + rate/10)), RelayMemory: 50e6 + int64(memberships)*1e6,
		}
	}
	bare := func(rate, size float64) scale.Phase {
		p := phase(rate, size, 0)
		p.CPU.Readers, p.CPU.Relays, p.Published, p.Reads = 0, 0, 0, 0
		return p
	}
	cell := func(series string, rate, size float64, databases int) scale.Cell {
		c := scale.Cell{
			Series: series, Payload: int(size), Shards: 8, Relays: 1, Feeds: 1, Databases: databases, To: "discard",
			Relayed: []scale.Phase{phase(rate, size, databases)}, Disk: size + 200,
		}
		if rate > 0 {
			c.Bare = []scale.Phase{bare(rate, size)}
		}
		return c
	}
	dear := cell(scale.Broker, 5000, 1000, 1)
	dear.To = "nats"
	dear.Relayed[0].CPU.Relays += 10 * 5000 * 30e-6
	drain := cell(scale.Drain, 100_000, 1000, 1)
	drain.Relayed[0].Messages, drain.Relayed[0].CPU.Producers, drain.Relayed[0].WAL = 0, 0, 10*1000
	business := bare(5000, 0)
	business.CPU.Producers, business.WAL = 10*5000*50e-6, 10*5000*200
	return &scale.Set{
		Machine: scale.Machine{Cores: 4}, Business: []scale.Phase{business}, Sequence: 1e6,
		Cells: []scale.Cell{
			cell(scale.Base, 5000, 1000, 1), cell(scale.Payload, 5000, 100, 1), cell(scale.Payload, 5000, 10_000, 1),
			cell(scale.Rate, 100, 1000, 1), cell(scale.Idle, 0, 1000, 1), cell(scale.Idle, 0, 1000, 50), dear, drain,
		},
	}
}

func inputs() Inputs {
	return Inputs{
		Rate: 1000, Databases: 1, Servers: 1, MessageSize: 1000, Destinations: 1, Retention: 6 * time.Hour, Load: 0.5, Zones: 1, RelayCores: 1, Broker: "discard",
	}
}

func compute(t *testing.T, change func(*Inputs)) Plan {
	t.Helper()
	in := inputs()
	if change != nil {
		change(&in)
	}
	if err := in.Validate(); err != nil {
		t.Fatal(err)
	}
	m, err := NewModel(measured(), in.Broker)
	if err != nil {
		t.Fatal(err)
	}
	return m.Compute(in)
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-6*math.Abs(want)+1e-9 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

// TestCompute holds the arithmetic against figures that were computed by hand.
func TestCompute(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Inputs)
		check  func(t *testing.T, p Plan)
	}{
		"one database": {nil, func(t *testing.T, p Plan) {
			if len(p.Beyond) > 0 {
				t.Errorf("beyond what was measured: %q", p.Beyond)
			}
			near(t, "relays", float64(p.Relays), 2)
			near(t, "shards", float64(p.Shards), 8)
			near(t, "connections", float64(p.Connections), 8)
			near(t, "period", p.Period.Hours(), 1)
			near(t, "server cores", p.ServerCores, 1000*200e-6+2*(0.01+500*100e-6))
			near(t, "added cores", p.MessageCores, 1000*150e-6+2*(0.01+500*100e-6))
			near(t, "polling cores", p.PollingCores, 2*0.01)
			near(t, "relay cores", p.RelayCores, 2*(0.005+500*20e-6))
			near(t, "WAL", p.WAL, 1000*1500+1000)
			near(t, "disk", p.Disk, 1000*7*3600*1200)
			near(t, "statements", p.Statements, 2*(20+50))
			near(t, "idle statements", p.IdleShare, 2*20)
			near(t, "WAL of a billion", p.Cost.WAL, 1301)
			near(t, "relay hours", p.Cost.RelayHours, 2*(0.005+500*20e-6)/1000*1e9/3600)
		}},
		"a broker's client": {func(in *Inputs) { in.Broker = "nats" }, func(t *testing.T, p Plan) {
			near(t, "relay cores", p.RelayCores, 2*(0.005+500*50e-6))
		}},
		"the dearest broker": {func(in *Inputs) { in.Broker = "" }, func(t *testing.T, p Plan) {
			if p.Broker != "nats" {
				t.Errorf("it is %s", p.Broker)
			}
		}},
		"a size between": {func(in *Inputs) { in.MessageSize = 5000 }, func(t *testing.T, p Plan) {
			near(t, "WAL", p.WAL, 1000*5500+1000)
			near(t, "disk of a message", p.DiskMessage, 5200)
			near(t, "server cores", p.ServerCores, 1000*600e-6+2*(0.01+500*100e-6))
		}},
		"more relays": {func(in *Inputs) { in.Rate = 40_000 }, func(t *testing.T, p Plan) {
			// Two would each be at 0.005 + 20,000 × 20 µs = 0.405 of a core, one at 0.805: half a core is allowed.
			near(t, "needed", float64(p.Needed), 2)
			near(t, "relays", float64(p.Relays), 3)
		}},
		"zones": {func(in *Inputs) { in.Rate, in.Zones = 40_000, 3 }, func(t *testing.T, p Plan) { near(t, "relays", float64(p.Relays), 3) }},
		"groups": {func(in *Inputs) { in.Databases = 200 }, func(t *testing.T, p Plan) {
			// Polling 200 databases costs each relay a whole core; half of one is allowed.
			if p.Groups < 3 || p.Relays != p.Groups*p.Sharing {
				t.Errorf("%d relays in %d groups", p.Relays, p.Groups)
			}
		}},
		"few connections": {func(in *Inputs) { in.Databases, in.Destinations = 20, 2 }, func(t *testing.T, p Plan) {
			near(t, "connections", float64(p.Connections), 80)
			near(t, "setting", float64(p.Budget), 40)
		}},
		"prices": {func(in *Inputs) { in.CPUHourPrice, in.WALPrice, in.DiskPrice = 1, 2, 3 }, func(t *testing.T, p Plan) {
			near(t, "price", p.Cost.Price, p.Cost.MessageHours+p.Cost.RelayHours+2*1301+3*1200*7*3600/(30*86400.0))
		}},
		"beyond what was measured": {func(in *Inputs) { in.Rate, in.MessageSize = 6000, 20_000 }, func(t *testing.T, p Plan) {
			if len(p.Beyond) != 2 || !strings.Contains(p.Beyond[0], "6,000 messages/s") || !strings.Contains(p.Beyond[1], "20 kB") {
				t.Errorf("it says %q", p.Beyond)
			}
		}},
		"the first ceiling": {nil, func(t *testing.T, p Plan) {
			// Each message takes 300 µs of the server, the relays 20 ms: 2 of 4 cores are reached at 6600/s.
			if first := p.Ceilings[0]; first.Name != "cores of a database server" || first.Basis != Assumed {
				t.Errorf("it is %+v", first)
			}
			near(t, "rate", p.MostRate, 6600)
		}},
		"a given ceiling": {func(in *Inputs) { in.Partitions, in.PartitionLimit, in.ServerCores = 2, 1000, 64 }, func(t *testing.T, p Plan) {
			if first := p.Ceilings[0]; first.Name != "the broker's partitions" || first.Basis != Given {
				t.Errorf("it is %+v", first)
			}
			near(t, "rate", p.MostRate, 1000)
		}},
	} {
		t.Run(name, func(t *testing.T) { c.check(t, compute(t, c.change)) })
	}
}

// TestProperties: more messages never take less, and nobody is left without connections, whatever is asked.
func TestProperties(t *testing.T) {
	m, err := NewModel(measured(), "")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		in := Inputs{
			Rate: math.Exp(random.Float64() * 13), Databases: 1 + random.IntN(60), MessageSize: random.Int64N(30_000), Destinations: 1 + random.IntN(4),
			Retention: time.Minute + time.Duration(random.Int64N(int64(30*24*time.Hour))), Load: 0.2 + 0.8*random.Float64(), Zones: 1 + random.IntN(4),
			RelayCores: 0.5 + 4*random.Float64(), MaxConnections: random.IntN(1000),
		}
		in.Servers = 1 + random.IntN(in.Databases)
		if err := in.Validate(); err != nil {
			t.Fatal(err)
		}
		more := in
		more.Rate *= 1 + random.Float64()
		a, b := m.Compute(in), m.Compute(more)
		for what, pair := range map[string][2]float64{
			"relays": {float64(a.Relays), float64(b.Relays)}, "WAL": {a.WAL, b.WAL}, "disk": {a.Disk, b.Disk},
		} {
			if pair[1] < pair[0]*(1-1e-9) {
				t.Fatalf("%s falls from %g to %g with the rate, %+v", what, pair[0], pair[1], in)
			}
		}
		perServer := (in.Databases + in.Servers - 1) / in.Servers
		switch {
		case a.Connections < 2*perServer*a.Sharing:
			t.Fatalf("%d connections for %d databases and %d relays", a.Connections, perServer, a.Sharing)
		case a.Relays < 2 || a.Relays < in.Zones || a.Needed >= a.Sharing:
			t.Fatalf("%d relays, %d of %d needed, with %d zones", a.Relays, a.Needed, a.Sharing, in.Zones)
		case a.Shards < a.Sharing:
			t.Fatalf("%d shards for %d relays", a.Shards, a.Sharing)
		case a.Period*time.Duration(a.Slots-2) < in.Retention:
			t.Fatalf("%s is kept, not %s", a.Period*time.Duration(a.Slots-2), in.Retention)
		case a.MessageCores > a.ServerCores || a.IdleShare > a.Statements*(1+1e-9) || a.PollingCores > a.ServerCores:
			t.Fatalf("a part is more than the whole: %+v", a)
		case (a.Ceilings[0].Share <= 1) != (a.MostRate >= in.Rate*(1-1e-6)):
			t.Fatalf("the first ceiling is at %g, and is met at %g of %g messages/s", a.Ceilings[0].Share, a.MostRate, in.Rate)
		}
	}
}

// TestValidate: everything that is wrong is said at once, and of what contradicts each other both sides.
func TestValidate(t *testing.T) {
	in := inputs()
	in.Rate, in.Retention, in.Load, in.MessageSize, in.CPUHourPrice = math.NaN(), 0, 1.5, -1, -2
	in.Servers, in.Zones, in.Relays, in.Shards, in.Partitions = 3, 20, 9, 8, 4
	err := in.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		"--rate is NaN", "--retention is 0s", "--load is 150%", "--message-size is -1", "--cpu-hour-price is -2",
		"--servers 3 and --databases 1 contradict", "--zones 20 and --relays 9 contradict", "--relays 9 and --shards 8 contradict",
		"--partitions 4 says nothing without --partition-limit",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say %q:\n%v", want, err)
		}
	}
	good := inputs()
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}

func TestNewModelRefuses(t *testing.T) {
	if _, err := NewModel(&scale.Set{}, ""); err == nil || !strings.Contains(err.Error(), "bench scale") {
		t.Errorf("constants of nothing: %v", err)
	}
	if _, err := NewModel(measured(), "kafka"); err == nil || !strings.Contains(err.Error(), `"nats"`) {
		t.Errorf("a broker that was not measured: %v", err)
	}
}

// TestChecks: of figures that the model was made from, it is not off.
func TestChecks(t *testing.T) {
	set := measured()
	set.Cells = append(set.Cells, set.Cells[0])
	set.Cells[len(set.Cells)-1].Series = scale.Check
	m, err := NewModel(set, "")
	if err != nil {
		t.Fatal(err)
	}
	checks := m.Checks()
	if len(checks) != 1 {
		t.Fatalf("%d checks", len(checks))
	}
	for _, p := range []Pair{checks[0].Relay, checks[0].Readers, checks[0].WAL, checks[0].Statement} {
		if math.Abs(p.Off()) > 1e-6 || p.Measured == 0 {
			t.Errorf("%+v is off by %g", p, p.Off())
		}
	}
}
