// Package brokers contains the snippets of the pages below docs/brokers, one file per page.
package brokers
