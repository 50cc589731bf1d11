// Package unitofwork tests the unit of work and its transactors in two hard cases: a COMMIT that gets
// no response, and a store that is replaced while the application runs.
package unitofwork
