// Command demo runs the admissions service with real servers: it starts everything, injects
// failures, and checks that every applicant got what was promised. The targets demo… of the
// Makefile call it.
//
//	demo up rabbitmq|nats|asynq   start the service; it stays in the background
//	demo crash                    kill the relay and the workers while hundreds of people apply
//	demo dead-letter              a mistake that an operator has to correct
//	demo partition                cut the network to the queue
//	demo deploy                   restart everything cleanly while mails go out
//	demo stop                     end the service
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/postrider/postrider/examples/admissions/demo/stage"
	"github.com/postrider/postrider/examples/admissions/demo/tour"
)

// people is the number of concurrent applicants in a tour.
const people = 200

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	command := ""
	if len(args) > 0 {
		command = args[0]
	}
	switch {
	case command == "network" && len(args) == 3:
		return stage.Forward(ctx, args[1], args[2])
	case command == "up" && len(args) == 2:
		return up(ctx, args[1])
	case command == "stop":
		return end(ctx)
	case command == "crash":
		return play(ctx, tour.Crash)
	case command == "dead-letter":
		return play(ctx, tour.DeadLetter)
	case command == "partition":
		return play(ctx, tour.Partition)
	case command == "deploy":
		return play(ctx, tour.Deploy)
	}
	return errors.New("usage: demo up rabbitmq|nats|asynq, demo crash, demo dead-letter, demo partition, demo deploy or demo stop")
}

// folder returns the directory of the demo's state, beside the data of the servers.
func folder() string {
	services := os.Getenv("POSTRIDER_SERVICES_DIR")
	if services == "" {
		services = ".services"
	}
	return filepath.Join(services, "admissions-demo")
}

func play(ctx context.Context, incident tour.Incident) error {
	s, err := stage.Open(folder())
	if err != nil {
		return err
	}
	ready, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if err := s.Ready(ready); err != nil {
		return fmt.Errorf("the demo does not run as it should; make demo starts it: %w", err)
	}
	return tour.Play(ctx, s, os.Stdout, people, incident)
}

func end(ctx context.Context) error {
	s, err := stage.Open(folder())
	if err != nil {
		return err
	}
	if err := s.End(ctx, s.All()...); err != nil {
		return err
	}
	fmt.Println("The demo has ended. Its data is kept; the servers still run, and dev/services down stops them.")
	return nil
}
