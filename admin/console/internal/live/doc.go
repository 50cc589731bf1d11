// Package live watches databases for the console: it samples their gauges, keeps the last day of them, and hands each new
// sample to whoever watches. However many watch, a database is asked once.
package live
