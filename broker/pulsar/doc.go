// Package pulsar carries messages.
package pulsar
