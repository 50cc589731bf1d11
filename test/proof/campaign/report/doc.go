// Package report writes a Markdown page with figures about any number of runs of the fault campaign.
package report
