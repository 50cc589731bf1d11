// Package api compares what users build on with committed listings below docs/api: the exported Go
// API of every public module, and the fields of the JSON that the command prints. After an intended
// change:
//
//	go test ./api -update
//
// docs/compatibility.md says what is promised, and which tests hold the rest of it.
package api
