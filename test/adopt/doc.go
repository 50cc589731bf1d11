// Package adopt tests the relay on outbox tables that an application already has. The layouts in
// testdata describe the tables: producers write plain SQL in their business transactions, the relay
// publishes to RabbitMQ, and the tests read the outcome from the application's own columns. The
// package also moves such an application to the log while everything runs.
package adopt
