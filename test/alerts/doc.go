// Package alerts tests the alert rules and the dashboard in deploy. Each alert has unit tests for
// promtool; the alerts about stalled relays are also tested with real relays and a real Prometheus.
package alerts
