// Package alerts tests the rules and the dashboard in deploy: each alert by Prometheus' own unit tests, and those about
// relays that stand still with real relays and a real Prometheus.
package alerts
