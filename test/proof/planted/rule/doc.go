// Package rule derives mutants of the product from its sources by rule: every comparison, every
// condition, every error path, every jump. Nobody chooses them, so nobody can overlook one.
//
//   - find.go: the mutants of a file, by what they change
//   - exclude.go: what is not mutated
//   - rewrite.go: a file with all its mutants, of which the environment chooses one
//   - sample.go: some mutants of each package, by a seed
//   - known.go: mutants that survive, with the reason
//
// All mutants of a file are compiled into it at once, each behind a condition. So a test is built
// once and not for each mutant, and a run without a mutant reveals which of them it reaches.
package rule
