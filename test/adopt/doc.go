// Package adopt plays outbox tables that applications have already through to RabbitMQ, as they are described in testdata: producers
// write plain SQL in their business transactions, and the tables are asked in their own words what has become of the messages. It also
// moves such an application to the log, while everything runs.
package adopt
