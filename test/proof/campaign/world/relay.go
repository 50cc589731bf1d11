package world

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func relayName(n int) string { return fmt.Sprintf("relay%d", n) }

const healthPort = 8710

// StartRelays starts the relay processes. Names at the brokers should exist by then.
func (w *World) StartRelays(ctx context.Context) error {
	for n := 1; n <= w.Options.Relays; n++ {
		if err := w.startRelay(n); err != nil {
			return err
		}
	}
	for _, p := range w.Relays() {
		if err := w.Lives(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// Lives waits until a relay responds.
func (w *World) Lives(ctx context.Context, relay *Process) error {
	if err := within(ctx, 30*time.Second, 50*time.Millisecond, func() error { return w.ask(ctx, relay, "/livez") }); err != nil {
		return fmt.Errorf("%s does not live: %w", relay.Name(), err)
	}
	return nil
}

func (w *World) startRelay(n int) error {
	name := relayName(n)
	health, inside := w.health[n-1], ""
	if w.network != nil {
		health, inside = fmt.Sprintf("%s:%d", w.network.of(n), healthPort), w.network.namespace(n)
	}
	file := filepath.Join(w.Options.Dir, name+".yaml")
	if err := os.WriteFile(file, []byte(w.relayConfig(name, health)), 0o600); err != nil {
		return err
	}
	_, err := w.Spawn(Program{
		Name: name, Role: Relay, Path: w.Options.Postrider, Args: []string{"relay", "--config", file},
		Metrics: "http://" + health + "/metrics", inside: inside, token: w.token,
	})
	return err
}

// relayConfig returns the configuration of a relay: one feed for each destination, with the
// messages of its topics.
func (w *World) relayConfig(name, health string) string {
	database := "postrider"
	if name == w.pooledRelay() {
		database = "campaign"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "databases:\n  app: {url: %q}\nhealth: {listen: %q, token: %q}\ndestinations:\n",
		w.dsn(w.RelayProxy(name), database, name), health, w.token)
	for _, d := range w.destinations() {
		fmt.Fprintf(&b, "  %s: {url: %q%s}\n", d, w.relayURL(d), w.brokerOptions(d))
	}
	b.WriteString("feeds:\n")
	for _, d := range w.destinations() {
		fmt.Fprintf(&b, "  %s:\n    destination: %s\n    only: {topics: [%q, %q]}\n", d, d, d, d+".*")
		fmt.Fprintf(&b, "    relay: {lease: %v, publish_timeout: 10s, poll_min: 100ms, poll_max: 250ms, retry: {attempts: %d, first: 500ms, most: 2s}, maintain_interval: 10s}\n",
			w.Options.Lease, Attempts)
	}
	return b.String()
}

func (w *World) brokerOptions(destination string) string {
	switch destination {
	case RabbitMQ:
		return fmt.Sprintf(", exchange: campaign, max_bytes: %d", MaxPayload)
	case Kafka:
		if w.Options.Once {
			return ", once: true"
		}
	case HTTP:
		options := fmt.Sprintf(", max_body: %d, allow_loopback: true", MaxPayload)
		if w.network != nil {
			options += fmt.Sprintf(", allow_private: [%q]", w.network.subnet())
		}
		if w.Options.Secret != "" {
			options += fmt.Sprintf(", secrets: %q", w.Options.Secret)
		}
		return options
	}
	return ""
}

// Relays returns the relay processes: relay1, relay2 …
func (w *World) Relays() []*Process { return w.Processes(Relay) }

// RelaysReady waits until every relay owns its share of the shards, and everything that it depends
// on responds.
func (w *World) RelaysReady(ctx context.Context) error {
	for _, p := range w.Relays() {
		if err := until(ctx, 50*time.Millisecond, func() error { return w.ask(ctx, p, "/readyz?verbose") }); err != nil {
			return fmt.Errorf("%s is not ready: %w", p.Name(), err)
		}
	}
	return nil
}

// ask sends a request to a relay's health address. For any status except 200 it returns an error
// with the response.
func (w *World) ask(ctx context.Context, p *Process, path string) error {
	address := strings.TrimSuffix(p.program.Metrics, "/metrics") + path
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	body, err := get(ctx, address, p.program.token)
	if err != nil {
		return err
	}
	defer body.Close()
	return nil
}

// client keeps no connections between requests, because the relay may be cut off and killed.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func get(ctx context.Context, address, token string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 4000))
		return nil, errors.New(resp.Status + ": " + string(said))
	}
	return resp.Body, nil
}
