package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/postrider/postrider/broker"
)

// Inspect implements [broker.Inspector].
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	sync := p.syncInterval(ctx)
	r := broker.Inspection{
		Confirmed: "The stream has acknowledged the message: a majority of its replicas has handed it to the operating " +
			"system; sync_interval says when it is on disk.",
		Settings: []broker.Setting{{Name: "sync_interval", Value: sync}},
	}
	s, err := p.sessions.Get(ctx)
	if err != nil {
		return r, err
	}
	for _, name := range names {
		stream, err := s.js.StreamNameBySubject(ctx, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			r.Warnings = append(r.Warnings, broker.Warning{
				Danger: fmt.Sprintf("No stream has the subject %s: messages to it are refused.", name),
				Remedy: fmt.Sprintf("Create one: nats stream add --subjects %s --storage file --replicas 3", name)})
			continue
		}
		if err != nil {
			return r, err
		}
		found, err := s.js.Stream(ctx, stream)
		if err != nil {
			return r, err
		}
		inspectStream(&r, &found.CachedInfo().Config, sync, p.config.Atomic)
	}
	return r, nil
}

func inspectStream(r *broker.Inspection, c *jetstream.StreamConfig, sync string, atomic bool) {
	r.Settings = append(r.Settings, broker.Setting{Name: "stream " + c.Name, Value: fmt.Sprintf(
		"storage %v, replicas %d, discard %v, max_msgs %d, max_bytes %d, max_age %v, duplicate_window %v",
		c.Storage, c.Replicas, c.Discard, c.MaxMsgs, c.MaxBytes, c.MaxAge, c.Duplicates)})
	edit := "nats stream edit " + c.Name
	inMemory := c.Storage == jetstream.MemoryStorage
	limited := c.MaxMsgs > 0 || c.MaxBytes > 0 || c.MaxMsgsPerSubject > 0
	for _, w := range []struct {
		applies        bool
		danger, remedy string
	}{
		{inMemory, "is in memory: a restart of its servers loses confirmed messages",
			"Create it again with storage file; storage cannot be changed."},
		{!inMemory && c.Replicas < 3 && sync != "always",
			fmt.Sprintf("has %d replica(s): a power failure loses messages confirmed since the last sync", c.Replicas),
			"Set sync_interval: always in the server's jetstream block, or, in a cluster, run " + edit + " --replicas 3"},
		{limited && c.Discard == jetstream.DiscardOld && c.Retention == jetstream.LimitsPolicy,
			"drops its oldest messages when it is full: unread messages can be dropped",
			"Let it refuse new ones instead, which the relay waits for: " + edit + " --discard new"},
		{c.Retention == jetstream.InterestPolicy, "keeps a message only while a consumer wants it: without one it is dropped",
			"Create the consumers before the relay starts, or the stream again with retention limits."},
		{c.Duplicates < 2*time.Minute,
			fmt.Sprintf("recognises repetitions for %v only: an outage that is longer leads to duplicates", c.Duplicates),
			edit + " --dupe-window 2m"},
		{atomic && !c.AllowAtomicPublish, "does not take atomic batches: a key's messages go one by one, which is slow",
			"Set allow_atomic: true in the stream's configuration, or leave out the option atomic."},
	} {
		if w.applies {
			r.Warnings = append(r.Warnings, broker.Warning{Danger: "Stream " + c.Name + " " + w.danger + ".", Remedy: w.remedy})
		}
	}
}

// syncInterval queries the monitoring address, because servers do not report the setting to
// clients.
func (p *Publisher) syncInterval(ctx context.Context) string {
	var varz struct {
		JetStream struct {
			Config struct {
				SyncInterval time.Duration `json:"sync_interval"`
				SyncAlways   bool          `json:"sync_always"`
			}
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(p.config.MonitorURL, "/")+"/varz", nil)
	if err == nil {
		var response *http.Response
		if response, err = http.DefaultClient.Do(request); err == nil {
			defer func() { _ = response.Body.Close() }()
			err = json.NewDecoder(response.Body).Decode(&varz)
		}
	}
	switch config := varz.JetStream.Config; {
	case err != nil || config.SyncInterval == 0 && !config.SyncAlways:
		return "unknown: monitor_url is not set, or is not that of a server with JetStream"
	case config.SyncAlways:
		return "always"
	default:
		return config.SyncInterval.String()
	}
}
