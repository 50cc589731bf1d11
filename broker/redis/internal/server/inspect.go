package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/postrider/postrider/broker"
)

const unknown = "unknown"

// Inspect queries the server's durability settings. Replicas is the number of replicas that
// confirmations wait for. Settings that the user may not read are "unknown"; managed servers, for
// example, forbid CONFIG.
func Inspect(ctx context.Context, c redis.UniversalClient, replicas int) (broker.Inspection, error) {
	text, err := c.Info(ctx).Result()
	if err != nil && !HasCode(err, "NOPERM", "unknown command") {
		return broker.Inspection{}, fmt.Errorf("redis: INFO: %w", err)
	}
	config, err := c.ConfigGet(ctx, "appendfsync").Result()
	if err != nil && !IsReply(err) {
		return broker.Inspection{}, fmt.Errorf("redis: CONFIG GET: %w", err)
	}
	info := make(map[string]string)
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	info["appendfsync"] = config["appendfsync"]
	info["appendonly"] = map[string]string{"1": "yes", "0": "no"}[info["aof_enabled"]]
	_, isCluster := c.(*redis.ClusterClient)
	var in broker.Inspection
	for _, name := range []string{
		"redis_version", "role", "connected_slaves", "appendonly", "appendfsync", "maxmemory", "maxmemory_policy",
	} {
		if info[name] == "" {
			info[name] = unknown
		}
		in.Settings = append(in.Settings, broker.Setting{Name: name, Value: info[name]})
	}
	in.Confirmed = confirmed(info, replicas)
	in.Warnings = warnings(info, replicas, isCluster)
	return in, nil
}

func confirmed(info map[string]string, replicas int) string {
	text := "Redis has it in memory"
	if info["appendonly"] == "yes" {
		text += " and in its append-only file, " + map[string]string{
			"always":   "flushed to the disk",
			"everysec": "which is flushed to the disk once a second",
			"no":       "which is flushed to the disk when the operating system sees fit",
			unknown:    "which is flushed to the disk at a time that we may not ask for",
		}[info["appendfsync"]]
	}
	if replicas > 0 {
		text += fmt.Sprintf(", and %d replicas have it in memory", replicas)
	}
	return text + "."
}

func warnings(info map[string]string, replicas int, isCluster bool) (list []broker.Warning) {
	appended, policy := info["appendonly"] == "yes", info["maxmemory_policy"]
	connected, err := strconv.Atoi(info["connected_slaves"])
	for _, w := range []struct {
		when           bool
		danger, remedy string
	}{
		{info["appendonly"] == "no",
			"Redis writes no append-only file: what was confirmed since the last snapshot, if any, is lost in a crash.",
			"Set appendonly yes and appendfsync always in redis.conf."},
		{info["appendonly"] == unknown, "It is not known whether Redis writes to the disk.", "Allow the user the command INFO."},
		{appended && info["appendfsync"] == "everysec",
			"Up to two seconds of confirmed messages can be lost when the machine crashes, or when Redis is killed while the disk is slow.",
			"Set appendfsync always in redis.conf, or keep sent messages in the outbox long enough to send them again."},
		{appended && info["appendfsync"] == "no",
			"Half a minute of confirmed messages, or more, can be lost when the machine crashes.",
			"Set appendfsync always in redis.conf."},
		{policy != "noeviction" && policy != unknown,
			"When memory is full, a stream or a queue can vanish: Redis deletes keys by its policy " + policy + ".",
			"Set maxmemory-policy noeviction in redis.conf."},
		{info["role"] == "slave", "The server is a replica: it takes no messages.", "Point the URL at the primary."},
		{info["cluster_enabled"] == "1" && !isCluster,
			"The server belongs to a Redis Cluster: messages whose slot is elsewhere are not accepted.",
			"Set cluster: true, and give the URL several of its nodes."},
		{err == nil && connected < replicas,
			fmt.Sprintf("Confirmations wait for %d replicas and there are %d.", replicas, connected),
			"Add replicas or lower wait_replicas."},
		{connected > 0 && replicas == 0,
			"Replicas lag behind: confirmed messages can be lost when one of them takes over.", "Set wait_replicas to 1 or more."},
	} {
		if w.when {
			list = append(list, broker.Warning{Danger: w.danger, Remedy: w.remedy})
		}
	}
	return list
}
