// Package site checks the documentation: links and anchors of all Markdown files as GitHub renders
// them, and the site that is built from docs/.
package site
