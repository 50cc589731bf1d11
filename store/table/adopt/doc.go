// Package adopt finds out how a table of messages that an application has already could be carried by package table: it inspects the
// table, and proposes a layout. Package tolog moves such a table to the log of package postgres.
package adopt
