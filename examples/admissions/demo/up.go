package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
)

// up starts the service, or its missing processes, and prints its addresses.
func up(ctx context.Context, queue string) error {
	s, err := stage.Open(folder())
	if err != nil || len(s.Missing()) == len(s.All()) {
		settings, err := settings(ctx, queue)
		if err != nil {
			return err
		}
		if s, err = stage.New(folder(), settings); err != nil {
			return err
		}
	} else if !strings.HasSuffix(s.Database, database(queue)) {
		return errors.New("the demo runs with another queue: make demo-stop first")
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := s.Up(ctx); err != nil {
		return err
	}
	fmt.Printf(`
The admissions service runs, with %s:

  apply           http://%s/
  console         http://%s/
  mails           %s/new
  logs            %s

Break it:         make demo-crash, make demo-dead-letter, make demo-partition, make demo-deploy
The command:      bin/postrider status --dsn '%s'
Stop it:          make demo-stop
`, queue, s.Settings.Pages, s.Console, s.Maildir, filepath.Dir(s.Log(stage.Relay)), s.Database)
	return nil
}

// database returns the name of a database for each queue: messages that remain in a queue belong to
// the database that they came from.
func database(queue string) string { return "admissions_" + queue }

// settings finds the servers by the variables that "dev/services env" prints.
func settings(ctx context.Context, queue string) (stage.Settings, error) {
	var errs []error
	get := func(name string) string {
		value := os.Getenv(name)
		if value == "" {
			errs = append(errs, fmt.Errorf("%s is not set", name))
		}
		return value
	}
	address, err := queueAddress(queue)
	errs = append(errs, err)
	self, err := os.Executable()
	errs = append(errs, err)
	config, err := filepath.Abs("examples/admissions/postrider.yaml")
	errs = append(errs, err)
	secret := make([]byte, 24)
	_, _ = rand.Read(secret) // never fails
	s := stage.Settings{
		Postrider:  filepath.Join(filepath.Dir(self), "postrider"),
		Admissions: filepath.Join(filepath.Dir(self), "admissions"),
		Demo:       self,
		Config:     config,
		Database:   get("POSTRIDER_TEST_POSTGRES18"),
		Queue:      address,
		SMTP:       get("POSTRIDER_TEST_SMTP"),
		Maildir:    get("POSTRIDER_TEST_MAILDIR"),
		Prefix:     "demo_",
		Secret:     "whsec_" + base64.StdEncoding.EncodeToString(secret),
	}
	for _, listener := range []struct {
		address *string
		wish    string
	}{
		{&s.Network, "127.0.0.1:8709"}, {&s.Health, "127.0.0.1:8710"}, {&s.Console, "127.0.0.1:8711"},
		{&s.Pages, "127.0.0.1:8080"}, {&s.Paydesk, "127.0.0.1:8081"},
	} {
		*listener.address, err = stage.Free(listener.wish)
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	s.Database, err = stage.CreateDatabase(ctx, s.Database, database(queue))
	return s, err
}

// queueAddress returns the URL of a queue's server.
func queueAddress(queue string) (string, error) {
	switch queue {
	case "rabbitmq", "nats", "asynq":
	default:
		return "", fmt.Errorf("QUEUE=%s: want rabbitmq, nats or asynq", queue)
	}
	name := "POSTRIDER_" + strings.ToUpper(queue) + "_URL"
	address, err := url.Parse(os.Getenv(name))
	if err != nil || address.Host == "" {
		return "", fmt.Errorf("%s is not set to an address", name)
	}
	if queue == "asynq" {
		address.Path = "/1" // Redis has numbers instead of names: 1 is the demo's
	}
	return address.String(), nil
}
