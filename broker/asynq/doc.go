// Package asynq carries messages.
package asynq
