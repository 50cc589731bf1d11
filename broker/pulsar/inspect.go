package pulsar

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/postrider/postrider/broker"
)

const confirmed = "The broker has written the message to the bookies' journals, as many of them as the ack quorum says. " +
	"Whether a journal is on disk by then, only the bookies' setting journalSyncData says."

// Inspect queries the admin interface for the durability of confirmations. Without AdminURL it only
// warns that the durability is unknown.
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	in := broker.Inspection{Confirmed: confirmed}
	warn := func(danger, remedy string) {
		in.Warnings = append(in.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
	}
	if p.cfg.AdminURL == "" {
		warn("it is not known whether messages are kept and on how many bookies",
			"Set admin_url to the broker's HTTP address, such as http://localhost:8080, and look again.")
		return in, nil
	}
	for _, name := range names {
		topic, err := topicName(name, p.cfg.Namespace)
		if err != nil {
			warn(err.Error(), "Correct the name in the routes.")
			continue
		}
		var subscriptions []string
		facts := make(map[string]float64) // values of the policies
		for path, fact := range map[string]any{
			"subscriptions": &subscriptions, "persistence?applied=true": &facts, "retention?applied=true": &facts,
		} {
			if err := p.ask(ctx, topic, path, fact); err != nil {
				return broker.Inspection{}, fmt.Errorf("pulsar: the admin interface: %w", err)
			}
		}
		in.Settings = append(in.Settings,
			broker.Setting{Name: "subscriptions (" + name + ")", Value: fmt.Sprint(len(subscriptions))},
			broker.Setting{Name: "persistence and retention (" + name + ")", Value: fmt.Sprint(facts)})
		if facts["bookkeeperAckQuorum"] == 1 {
			warn(fmt.Sprintf("topic %s confirms what one bookie has: its disk is the only copy", name),
				"Ask for two at least: pulsar-admin namespaces set-persistence -e 3 -w 3 -a 2 -r 0.")
		}
		if len(subscriptions) == 0 && (facts["retentionTimeInMinutes"] == 0 || facts["retentionSizeInMB"] == 0) {
			warn(fmt.Sprintf("topic %s does not exist or has no subscription yet: messages published now are not kept", name),
				"Let every consumer subscribe once before the relay starts, or: pulsar-admin namespaces set-retention -t 7d -s -1.")
		}
	}
	return in, nil
}

// ask reads a value about a topic. A missing value leaves fact unchanged.
func (p *Publisher) ask(ctx context.Context, topic, path string, fact any) error {
	escaped := (&url.URL{Path: "/admin/v2/" + strings.Replace(topic, "://", "/", 1) + "/"}).EscapedPath()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(p.cfg.AdminURL, "/")+escaped+path, nil)
	if err != nil {
		return err
	}
	token := p.cfg.Token
	if p.cfg.tokens != nil {
		if token, err = p.cfg.tokens.Token(ctx); err != nil {
			return err
		}
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: p.cfg.TLS, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // was only read
	switch answer.StatusCode {
	case http.StatusOK:
		return json.NewDecoder(answer.Body).Decode(fact)
	case http.StatusNoContent, http.StatusNotFound:
		return nil
	}
	return fmt.Errorf("%s: %s", path, answer.Status)
}
