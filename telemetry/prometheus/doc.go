// Package prometheus counts and times messages, relays, inboxes and patrols for Prometheus.
package prometheus
