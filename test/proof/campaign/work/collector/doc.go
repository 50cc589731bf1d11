// Package collector reads what brokers hold, from the first entry on, with the brokers' own clients and nothing of the product. Every entry has
// a position that stays the same, so that reading it again is no duplicate. Collectors outlive every outage.
package collector
