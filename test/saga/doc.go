// Package saga tests that many sagas complete while the processes that run them are killed
// continuously. Package points tests the single statements of a saga.
package saga
