// Package sqltext puts statements together, for MySQL and PostgreSQL, and runs them.
package sqltext
