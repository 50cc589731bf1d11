// Package web embeds the pages of the console. "npm run build" builds them from src. The result is
// committed, so that building the command needs no Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the files for the browser: index.html, and those below assets/, whose names change
// with their content.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}
