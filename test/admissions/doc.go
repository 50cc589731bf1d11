// Package admissions tests the admissions example end to end: all of its programs against real
// servers, hundreds of concurrent applicants, injected failures and a real browser. It covers what
// "make demo" shows.
package admissions
