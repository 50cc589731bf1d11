// Package config reads the configuration file.
package config
