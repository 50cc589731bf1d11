// Package shop holds generated messages for tests and examples. To regenerate them, run in the
// folder above:
//
//	protoc --go_out=. --go_opt=paths=source_relative shop/*.proto
package shop
