package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/postrider/postrider"
	"github.com/postrider/postrider/broker"
	_ "github.com/postrider/postrider/broker/nats"        // nats://
	_ "github.com/postrider/postrider/broker/rabbitmq"    // amqp://
	_ "github.com/postrider/postrider/broker/redis/asynq" // asynq://
)

// The jobs, as named in postrider.yaml. Each has an inbox of the same name.
const (
	jobVerify  = "verify_document"
	jobPayment = "create_payment"
	jobMail    = "send_email"
)

// queue is the queue at QUEUE_URL. Only this file knows that there are several kinds.
type queue struct {
	driver broker.Driver
	set    settings
}

func openQueue(set settings) (queue, error) {
	driver, err := broker.ForURL(set.queueURL)
	return queue{driver, set}, err
}

// create creates the queues of jobs, if the broker does not create them by itself.
func (q queue) create(ctx context.Context, jobs ...string) error {
	if q.driver.Create == nil {
		return nil
	}
	for _, job := range jobs {
		if err := q.driver.Create(ctx, &broker.Settings{URL: q.set.queueURL}, q.set.queuePrefix+job); err != nil {
			return err
		}
	}
	return nil
}

// deliver returns the functions that deliver jobs to workers; run them concurrently. If several
// processes wait for a job, one of them gets it.
func (q queue) deliver(workers []worker) (parts []func(context.Context) error, err error) {
	if q.driver.Name == "asynq" {
		return q.deliverShared(workers)
	}
	for _, w := range workers {
		name := q.set.queuePrefix + w.inbox.Name()
		options := map[string]string{"name": name, "group": name}
		if q.driver.Name == "nats" {
			options["ack_wait"] = "5s" // after a crash, jobs of the process are redelivered after this time, and new jobs wait for them
		}
		jobs, err := q.subscribe(options)
		if err != nil {
			return nil, err
		}
		parts = append(parts, func(ctx context.Context) error { return w.inbox.Run(ctx, jobs) })
	}
	return parts, nil
}

// deliverShared is deliver for asynq. A job is a type of task there, and one queue contains tasks
// of all types, so a process that receives from it must handle all of them.
func (q queue) deliverShared(workers []worker) (parts []func(context.Context) error, err error) {
	if len(workers) < 3 {
		return nil, errors.New("with asynq one process does all jobs: start it without names of workers")
	}
	jobs, err := q.subscribe(nil)
	if err != nil {
		return nil, err
	}
	parts = append(parts, func(ctx context.Context) error { return jobs.Consume(ctx, byType(workers)) })
	for _, w := range workers {
		parts = append(parts, func(ctx context.Context) error { return w.inbox.Run(ctx) }) // retries failed jobs
	}
	return parts, nil
}

// byType passes each job to the worker for its type of message.
func byType(workers []worker) postrider.Handler {
	return func(ctx context.Context, m postrider.Message) error {
		for _, w := range workers {
			if w.takes == m.Type {
				return w.inbox.Receive(ctx, m)
			}
		}
		return fmt.Errorf("nobody does %q", m.Type)
	}
}

func (q queue) subscribe(options map[string]string) (postrider.Consumer, error) {
	values := map[string]string{"in_flight": "8"}
	maps.Copy(values, options)
	return q.driver.Subscribe(&broker.Settings{URL: q.set.queueURL, Values: values})
}
