// Package config reads the configuration file of the postrider command: databases, destinations,
// and the feeds between them. The same configuration can be built in Go as a [File].
//
//	databases:
//	  app: {url: "${DATABASE_URL}"}
//	destinations:
//	  jobs: {url: "nats://localhost:4222"}
//	feeds:
//	  default: {}
//
// [Load] and [Parse] report every mistake at once, with line and column, as [Mistakes]. The drivers
// that a program imports decide which brokers exist and which options each has; see package broker.
package config
