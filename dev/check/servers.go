package main

import (
	"slices"
	"strings"
	"sync"
)

// services is the script that installs programs and starts servers.
const services = "dev/services"

// A start is a set of servers that one call of the script starts, one after the other. Sets start
// in parallel.
type start []string

var (
	quickServers = []start{{"postgres18", "pgbouncer"}}
	allServers   = []start{
		{"postgres15", "postgres18", "postgres15@crash", "postgres18@crash", "postgres15@e2e", "postgres18@e2e", "pgbouncer", "mariadb", "smtp"},
		{"pulsar"},
		{"kafka", "kafka@crash", "kafka@secure"},
		{"rabbitmq", "rabbitmq@crash", "rabbitmq@secure", "redis", "redis@crash", "redis@secure", "redis-cluster", "registry"},
		{"elasticmq", "moto"},
		{"keycloak"},
		{"nats", "nats@crash", "nats@secure", "nats-cluster"},
	}
	longServers = append([]start{{"postgres14", "postgres16", "postgres17"}, {"mysql"}, {"pulsar@crash"}, {"kafka-cluster"}, {"rabbitmq-cluster", "redis-sentinel", "nats-cluster@secure"}, {"pulsar@secure"}}, allServers...)
)

// startServers starts servers and returns a function that stops those that did not run before.
func (r *run) startServers(sets []start) (stop func(), err error) {
	before, err := output(r.dir, services, "running")
	if err != nil {
		return nil, err
	}
	errs := make([]error, len(sets))
	var wg sync.WaitGroup
	for i, set := range sets {
		wg.Go(func() { errs[i] = r.command(".", services, append([]string{"up"}, set...)...) })
	}
	wg.Wait()
	stop = func() {
		now, err := output(r.dir, services, "running")
		names := strings.Fields(now)
		names = slices.DeleteFunc(names, func(n string) bool { return slices.Contains(strings.Fields(before), n) })
		if err == nil && len(names) > 0 {
			_, err = output(r.dir, services, append([]string{"down"}, names...)...) // also after an interrupt
		}
		if err != nil {
			r.say("stopping the servers: %v", err)
		}
	}
	for _, err := range errs {
		if err != nil {
			return stop, err
		}
	}
	return stop, nil
}

// addresses adds the addresses of servers and tools to the environment of the tests.
func (r *run) addresses() error {
	text, err := output(r.dir, services, "env")
	if err != nil {
		return err
	}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimSpace(strings.TrimPrefix(line, "export ")), "=")
		if ok {
			r.env = append(r.env, name+"="+strings.ReplaceAll(strings.Trim(value, "'"), `'\''`, "'"))
		}
	}
	return nil
}
