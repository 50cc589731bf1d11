// Package console tests the console as people use it: the real command, with PostgreSQL and NATS behind it and a real browser
// in front of it. The tests of the browser are in the folder browser; what they look at is prepared here.
package console
