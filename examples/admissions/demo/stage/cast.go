package stage

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// The names of the processes.
const (
	Network = "network" // a proxy between the queue and its clients
	Relay   = "relay"   // postrider relay, with the console
	Pages   = "pages"   // admissions serve
	Verify  = "verify"  // admissions work verify, and so on
	Payment = "payment"
	Mail    = "mail"
	Workers = "workers" // all three in one process
	Paydesk = "paydesk" // simulates the payment provider
)

// Workers returns the names of the worker processes. With asynq there is only one, because one
// queue contains tasks of all kinds.
func (s *Stage) Workers() []string {
	if strings.HasPrefix(s.Queue, "asynq:") {
		return []string{Workers}
	}
	return []string{Verify, Payment, Mail}
}

// All returns the names of all processes, in the order in which they are started.
func (s *Stage) All() []string {
	return slices.Concat([]string{Network, Paydesk, Pages}, s.Workers(), []string{Relay})
}

// program returns the program and the arguments of a process.
func (s *Stage) program(name string) (string, []string, error) {
	switch name {
	case Network:
		target, err := url.Parse(s.Queue)
		if err != nil {
			return "", nil, err
		}
		return s.Demo, []string{"network", s.Settings.Network, target.Host}, nil
	case Relay:
		return s.Postrider, []string{"relay", "--config", s.Config}, nil
	case Pages:
		return s.Admissions, []string{"serve"}, nil
	case Paydesk:
		return s.Admissions, []string{"paydesk"}, nil
	case Workers:
		return s.Admissions, []string{"work"}, nil
	case Verify, Payment, Mail:
		return s.Admissions, []string{"work", name}, nil
	}
	return "", nil, fmt.Errorf("there is no process %q", name)
}

// Environment returns the environment of every process, without variables that could change the
// configuration of the relay.
func (s *Stage) Environment() ([]string, error) {
	queue, err := url.Parse(s.Queue)
	if err != nil {
		return nil, err
	}
	queue.Host = s.Settings.Network
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "POSTRIDER_") || strings.HasPrefix(v, "OTEL_") || strings.HasPrefix(v, "PG")
	})
	return append(env,
		"DATABASE_URL="+s.Database,
		"QUEUE_URL="+queue.String(),
		"QUEUE_PREFIX="+s.Prefix,
		"SMTP_URL="+s.SMTP,
		"ADMISSIONS_LISTEN="+s.Settings.Pages,
		"ADMISSIONS_URL=http://"+s.Settings.Pages,
		"PAYDESK_LISTEN="+s.Settings.Paydesk,
		"PAYDESK_URL=http://"+s.Settings.Paydesk,
		"PAYMENT_SECRET="+s.Secret,
		"RELAY_HEALTH="+s.Health,
		"RELAY_CONSOLE="+s.Console,
	), nil
}
