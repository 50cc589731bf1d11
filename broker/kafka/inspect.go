package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/postrider/postrider/broker"
)

// Inspect implements [broker.Inspector].
func (p *Publisher) Inspect(ctx context.Context, names []string) (broker.Inspection, error) {
	found := broker.Inspection{Confirmed: "All in-sync replicas of the partition have the message (acks=all); " +
		"each forces it to disk when its log.flush settings or its operating system say."}
	admin, err := newAdmin(p.cfg)
	if err != nil {
		return found, err
	}
	defer admin.Close()
	topics, err := admin.ListTopics(ctx, names...)
	if err != nil {
		return found, fmt.Errorf("kafka: %w", err)
	}
	configs, err := admin.DescribeTopicConfigs(ctx, names...)
	if err != nil {
		return found, fmt.Errorf("kafka: %w", err)
	}
	for _, name := range names {
		config, err := configs.On(name, nil)
		p.inspect(&found, name, topics[name], config.Configs, errors.Join(topics[name].Err, err, config.Err))
	}
	return found, nil
}

func (p *Publisher) inspect(
	found *broker.Inspection, name string, topic kadm.TopicDetail, configs []kadm.Config, err error,
) {
	set := func(setting, value string) {
		found.Settings = append(found.Settings, broker.Setting{Name: fmt.Sprintf("%s (%s)", setting, name), Value: value})
	}
	warn := func(is bool, danger, remedy string) {
		if is {
			danger = fmt.Sprintf("Topic %s: %s", name, danger)
			found.Warnings = append(found.Warnings, broker.Warning{Danger: danger, Remedy: remedy})
		}
	}
	if err != nil {
		warn(true, err.Error(), fmt.Sprintf("Create it: kafka-topics.sh --create --topic %s --partitions 12 "+
			"--replication-factor 3 --config min.insync.replicas=2. If it is there, allow Describe and DescribeConfigs.", name))
		return
	}
	replicas := topic.Partitions.NumReplicas()
	set("replication.factor", strconv.Itoa(replicas))
	warn(replicas < 2, "there is one replica: a confirmed message is lost with that broker's disk.",
		"Give it three with kafka-reassign-partitions.sh, or create it again with --replication-factor 3.")
	for _, c := range configs {
		value := c.MaybeValue()
		n, _ := strconv.Atoi(value)
		alter := fmt.Sprintf("kafka-configs.sh --alter --entity-type topics --entity-name %s --add-config %s=", name, c.Key)
		switch c.Key {
		case "min.insync.replicas":
			warn(n < 2 && replicas > 1, c.Key+" is 1: a message counts as confirmed when only the leader has it.", alter+"2")
			warn(n > 1 && n >= replicas, c.Key+" is all replicas: nothing can be sent while one is down.", alter+strconv.Itoa(replicas-1))
		case "unclean.leader.election.enable":
			warn(value == "true", c.Key+" is true: a replica that lacks confirmed messages can become the leader.",
				alter+"false")
		case "max.message.bytes":
			warn(n < p.cfg.MaxBytes, c.Key+" is below max_bytes: large batches are refused, and sent again in halves.",
				fmt.Sprintf("%s%d, or set max_bytes to %d.", alter, p.cfg.MaxBytes, n))
		case "retention.ms", "retention.bytes", "cleanup.policy":
		default:
			continue
		}
		set(c.Key, value)
	}
}
