// Package config is the configuration file: databases, destinations, and the feeds between them, as one YAML file or as
// the same structs in Go.
//
//	databases:
//	  app: {url: "${DATABASE_URL}"}
//	destinations:
//	  jobs: {url: "nats://localhost:4222"}
//	feeds:
//	  default: {}
//
// [Load] and [Parse] report every mistake at once, with line and column, as [Mistakes]. Which brokers there are, and what
// can be set for each, is up to the packages that the program imports: see package broker.
package config
