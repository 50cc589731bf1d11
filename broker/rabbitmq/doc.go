// Package rabbitmq carries messages.
package rabbitmq
