// Package report tells what runs of the fault campaign have shown: a Markdown page with pictures, over any number of runs.
package report
