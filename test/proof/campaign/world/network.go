package world

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"strings"
)

// network gives each relay its own network namespace, so that it can be cut off silently: not even
// a reset arrives. Relays talk only to proxies, which listen on one address of the host.
type network struct {
	instance string
	block    int // 10.block.0.0/16
	relays   int
}

func newNetwork(instance string, relays int) *network {
	h := fnv.New32a()
	_, _ = h.Write([]byte(instance))
	return &network{instance: instance, block: 64 + int(h.Sum32()%128), relays: relays}
}

// host returns the address where proxies listen.
func (n *network) host() string { return fmt.Sprintf("10.%d.0.1", n.block) }

// subnet returns the network of the world.
func (n *network) subnet() string { return fmt.Sprintf("10.%d.0.0/16", n.block) }

// of returns the address of a relay, from 1 on.
func (n *network) of(relay int) string { return fmt.Sprintf("10.%d.%d.2", n.block, relay) }

func (n *network) namespace(relay int) string {
	return fmt.Sprintf("postrider-%s-%d", n.instance, relay)
}

// port returns the name of the host's end of the link to a relay. The kernel allows 15 characters.
func (n *network) port(relay int) string { return fmt.Sprintf("pr%dn%d", n.block, relay) }

func (n *network) build(ctx context.Context) error {
	// When a link is down its route is gone: responses must not take another route then.
	if err := ip(ctx, "route", "add", "blackhole", n.subnet(), "metric", "4000"); err != nil {
		return err
	}
	if err := ip(ctx, "address", "add", n.host()+"/32", "dev", "lo"); err != nil {
		return err
	}
	for relay := 1; relay <= n.relays; relay++ {
		ns, port := n.namespace(relay), n.port(relay)
		gateway := fmt.Sprintf("10.%d.%d.1", n.block, relay)
		for _, args := range [][]string{
			{"netns", "add", ns},
			{"link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", ns},
			{"address", "add", gateway + "/30", "dev", port},
			{"link", "set", port, "up"},
			{"-n", ns, "link", "set", "lo", "up"},
			{"-n", ns, "address", "add", n.of(relay) + "/30", "dev", "eth0"},
			{"-n", ns, "link", "set", "eth0", "up"},
			{"-n", ns, "route", "add", "default", "via", gateway},
		} {
			if err := ip(ctx, args...); err != nil {
				return err
			}
		}
	}
	return nil
}

// removeNetwork removes what build has created, as far as it exists.
func removeNetwork(ctx context.Context, instance string) error {
	n := newNetwork(instance, 0)
	if os.Geteuid() != 0 {
		return nil
	}
	out, err := exec.CommandContext(ctx, "ip", "netns", "list").Output()
	if err != nil {
		return nil //nolint:nilerr // no such program: then nothing was built either
	}
	var errs []error
	for line := range strings.Lines(string(out)) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if strings.HasPrefix(name, "postrider-"+instance+"-") {
			errs = append(errs, ip(ctx, "netns", "delete", name)) // which also deletes both ends of the link
		}
	}
	if text, _ := exec.CommandContext(ctx, "ip", "-o", "address", "show", "dev", "lo").Output(); strings.Contains(string(text), n.host()+"/32") {
		errs = append(errs, ip(ctx, "address", "delete", n.host()+"/32", "dev", "lo"))
	}
	text, _ := exec.CommandContext(ctx, "ip", "route", "show", "type", "blackhole").Output()
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 1 && strings.HasPrefix(fields[1], fmt.Sprintf("10.%d.", n.block)) {
			args := []string{"route", "delete", "blackhole", fields[1]}
			if i := strings.Index(line, "metric "); i >= 0 {
				args = append(args, strings.Fields(line[i:])[:2]...)
			}
			errs = append(errs, ip(ctx, args...))
		}
	}
	return errors.Join(errs...)
}

// cut takes a relay off the network. With answersOnly what it sends still arrives.
func (n *network) cut(ctx context.Context, relay int, answersOnly bool) error {
	if answersOnly {
		return ip(ctx, "route", "add", "blackhole", n.of(relay)+"/32")
	}
	return ip(ctx, "link", "set", n.port(relay), "down")
}

// join undoes a cut.
func (n *network) join(ctx context.Context, relay int, answersOnly bool) error {
	if answersOnly {
		return ip(ctx, "route", "delete", "blackhole", n.of(relay)+"/32")
	}
	return ip(ctx, "link", "set", n.port(relay), "up")
}

func ip(ctx context.Context, args ...string) error { return command(ctx, "ip", args...) }
