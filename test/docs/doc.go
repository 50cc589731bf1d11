// Package docs tests the documentation. Every code block of every Markdown page in the repository
// is compiled, parsed or executed by a checker for its language. CONTRIBUTING.md has the rules for
// writers.
//
// Go excerpts are regions of compiled files, most of them below snippets. To write changed regions
// into the pages:
//
//	go test ./docs -update
//
// TestDocs in cmd/postrider checks command lines of postrider, because the command tree is there.
package docs
