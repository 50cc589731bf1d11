package stage

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
)

// Names of the processes.
const (
	Network = "network" // stands between the queue and those who use it
	Relay   = "relay"   // postrider relay, with the console
	Pages   = "pages"   // admissions serve
	Verify  = "verify"  // admissions work verify, and so on
	Payment = "payment"
	Mail    = "mail"
	Workers = "workers" // all three in one process
	Paydesk = "paydesk" // stands for another company
)

// Workers are the processes that work on messages. With asynq it is one: there, tasks of all kinds come through one queue.
func (s *Stage) Workers() []string {
	if strings.HasPrefix(s.Queue, "asynq:") {
		return []string{Workers}
	}
	return []string{Verify, Payment, Mail}
}

// All are the processes in the order in which they are started.
func (s *Stage) All() []string {
	return slices.Concat([]string{Network, Paydesk, Pages}, s.Workers(), []string{Relay})
}

// program returns the program of a process, and its arguments.
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

// Environment is what every process is told. Whatever else might change the configuration of the relay is left out.
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
