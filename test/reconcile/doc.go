// Package reconcile holds the test of an enrolment service from end to end: capacity, duplicate submits, lost events and restarts.
package reconcile
