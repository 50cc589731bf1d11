// Package trace tests that one trace leads from a request to the effect of its message, through a database, a relay and each
// broker. The spans travel as real OTLP, and the pictures in docs/trace are drawn from what was received:
//
//	go test ./trace -update
package trace
