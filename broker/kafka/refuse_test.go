package kafka

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/postrider/postrider"
)

func admin(t *testing.T, p *Publisher) *kadm.Client {
	t.Helper()
	a, err := newAdmin(p.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	return a
}

// alter changes a topic's setting and returns once the broker applies it.
func alter(t *testing.T, p *Publisher, topic, name, value string) {
	t.Helper()
	a := admin(t, p)
	if _, err := a.AlterTopicConfigs(t.Context(), []kadm.AlterConfig{{Op: kadm.SetConfig, Name: name, Value: &value}}, topic); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); {
		configs, err := a.DescribeTopicConfigs(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range configs[0].Configs {
			if c.Key == name && c.MaybeValue() == value {
				return
			}
		}
	}
	t.Fatalf("%s of %s does not become %s", name, topic, value)
}

// TestTopicTakesLess publishes to a topic whose size limit is below the configured one: the broker
// refuses the whole batch, but only the message that exceeds the limit must fail.
func TestTopicTakesLess(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, map[string]string{"partitions": "1"})
	p := open1(t, Config{URL: "kafka://" + server(t)})
	alter(t, p, topic, "max.message.bytes", "20000")
	var msgs []postrider.Message
	var want []postrider.Class
	for n := range 60 {
		m := parcel(topic, fmt.Sprint(n%20), n)
		m.Payload = append(m.Payload, make([]byte, 1000)...)
		class := postrider.Class(-1)
		if n == 25 { // the second of key 5
			m.Payload = make([]byte, 30000)
			_, _ = rand.Read(m.Payload)
			class = postrider.ClassPermanent
		} else if n == 45 {
			class = postrider.ClassUnavailable
		}
		msgs, want = append(msgs, m), append(want, class)
	}
	expectClasses(t, p.Publish(t.Context(), msgs), want)
	if errs := p.Publish(t.Context(), append(msgs[:25:25], msgs[46:]...)); errs != nil {
		t.Errorf("got %v for messages that fit", errs)
	}
	alter(t, p, topic, "max.message.bytes", "100000")
	if errs := p.Publish(t.Context(), msgs); errs != nil {
		t.Errorf("got %v after the topic was allowed more", errs)
	}
}

// TestCompactedTopicWantsKeys publishes a message without a key to a topic that requires keys.
func TestCompactedTopicWantsKeys(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, map[string]string{"partitions": "1"})
	p := open1(t, Config{URL: "kafka://" + server(t)})
	alter(t, p, topic, "cleanup.policy", "compact")
	keyless := parcel(topic, "", 1)
	keyless.AggregateType = ""
	msgs := []postrider.Message{parcel(topic, "a", 0), keyless, parcel(topic, "b", 2)}
	expectClasses(t, p.Publish(t.Context(), msgs), []postrider.Class{-1, postrider.ClassPermanent, -1})
}

func grown(p *Publisher, topic string) any {
	n, _ := p.counts.Load(topic)
	return n
}

func TestGrowthIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	topic := newTopic(t, map[string]string{"partitions": "2"})
	p := open1(t, Config{URL: "kafka://" + server(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if errs := p.Publish(t.Context(), []postrider.Message{parcel(topic, "a", 0)}); errs != nil {
		t.Fatal(errs)
	}
	if _, err := admin(t, p).UpdatePartitions(t.Context(), 5, topic); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); grown(p, topic) != 5 && time.Now().Before(deadline); {
		p.dropIdle() // a new session queries the number
		_ = p.Publish(t.Context(), []postrider.Message{parcel(topic, "a", 1)})
	}
	_ = p.Publish(t.Context(), []postrider.Message{parcel(topic, "a", 2)})
	if n := strings.Count(log.String(), "has gained partitions"); n != 1 {
		t.Errorf("logged %d times: %s", n, log.String())
	}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	topic := newTopic(t, nil)
	p := open1(t, Config{URL: "kafka://" + server(t)})
	alter(t, p, topic, "unclean.leader.election.enable", "true")
	found, err := p.Inspect(t.Context(), []string{topic, "missing-" + topic})
	if err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprint(found)
	for _, want := range []string{"replication.factor (" + topic + ") 1", "min.insync.replicas (" + topic + ") 1",
		"there is one replica", "can become the leader", "missing-" + topic + ": UNKNOWN_TOPIC_OR_PARTITION", "retention.ms"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	down := open1(t, Config{URL: "kafka://127.0.0.1:1"})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if _, err := down.Inspect(ctx, []string{topic}); err == nil {
		t.Error("a cluster that is not there was inspected")
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want postrider.Scope
	}{
		{kerr.MessageTooLarge, postrider.ScopeMessage},
		{kerr.InvalidTopicException, postrider.ScopeMessage},
		{kerr.UnknownTopicOrPartition, postrider.ScopeName},
		{fmt.Errorf("last of several: %w", kerr.UnknownTopicOrPartition), postrider.ScopeName},
		{kerr.UnknownTopicID, postrider.ScopeName},
		{kerr.TopicAuthorizationFailed, postrider.ScopeName},
		{kerr.PolicyViolation, postrider.ScopeName},
		{kerr.NotEnoughReplicas, postrider.ScopeName},
		{kerr.ClusterAuthorizationFailed, postrider.ScopeDestination},
		{kerr.SaslAuthenticationFailed, postrider.ScopeDestination},
		{kerr.NotEnoughReplicasAfterAppend, postrider.ScopeUnknown},
		{kerr.RequestTimedOut, postrider.ScopeUnknown},
		{kerr.OutOfOrderSequenceNumber, postrider.ScopeUnknown},
		{kerr.UnknownProducerID, postrider.ScopeUnknown},
		{kerr.InvalidProducerEpoch, postrider.ScopeUnknown},
		{errors.New("anything"), postrider.ScopeUnknown},
	} {
		err := classify(c.err)
		if (err != nil) != (c.want != postrider.ScopeUnknown) || postrider.ScopeOf(err) != c.want {
			t.Errorf("%v: got %v, want %v", c.err, postrider.ScopeOf(err), c.want)
		}
	}
}
