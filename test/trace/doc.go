// Package trace tests that one trace leads from a request through a database, a relay and each broker
// to the effect of its message. The spans are exported as real OTLP, and the figures in docs/trace are
// drawn from what the collector received:
//
//	go test ./trace -update
package trace
