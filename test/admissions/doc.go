// Package admissions tests the worked example as people use it: all of its programs, with real servers behind them, hundreds of
// applicants at once, failures on purpose, and a real browser. What is tested is also what "make demo" shows.
package admissions
