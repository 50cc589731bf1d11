// Package site checks the documentation: links and anchors of all Markdown files as GitHub shows them, and the site that is
// made from docs/.
package site
