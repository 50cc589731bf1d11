// Package nats carries messages.
package nats
