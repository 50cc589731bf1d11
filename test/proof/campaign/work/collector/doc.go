// Package collector reads everything that the brokers hold, from the first entry on, with the
// brokers' own clients and no code of the product. Every entry has a stable position, so reading it
// again does not count as a duplicate. Collectors survive every outage.
package collector
