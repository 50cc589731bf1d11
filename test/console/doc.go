// Package console tests the console end to end: the real command, PostgreSQL and NATS behind it and
// a real browser in front of it. The Go code here prepares the data; the browser tests are in the
// folder browser.
package console
