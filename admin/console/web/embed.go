// Package web holds the pages of the console. They are built from src with "npm run build", and the result is kept beside
// it so that building the daemon needs no Node.
package web

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns what a browser gets: index.html, and under assets/ what it asks for, whose names change with the content.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	return files
}
