// Package kafka carries messages.
package kafka
