// Package redis carries messages.
package redis
