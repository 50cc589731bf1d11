// Package catalog is what a database says about a table of messages that an application has already.
package catalog
