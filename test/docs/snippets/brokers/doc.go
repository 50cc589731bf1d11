// Package brokers has what the pages below docs/brokers show, one file a page.
package brokers
