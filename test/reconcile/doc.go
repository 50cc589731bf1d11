// Package reconcile tests the enrollment service end to end: capacity, duplicate submissions, lost
// events and restarts.
package reconcile
