// Package unitofwork tests the unit of work and its transactors where it hurts: answers to COMMIT that never come, and stores that are
// swapped under an application.
package unitofwork
