// Package docs holds that what the pages show is true: every code block of every Markdown page of the repository is
// compiled, parsed or executed, by a checker for its language. CONTRIBUTING.md says what writers have to know.
//
// Go excerpts are regions of compiled files, most of them below snippets. To write changed regions into the pages:
//
//	go test ./docs -update
//
// Command lines of postrider are checked by TestDocs in cmd/postrider, where the command tree is.
package docs
