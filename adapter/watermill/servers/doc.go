// Package servers tests the bridge with the real publishers of Watermill and the real servers behind them. It is a module of
// its own, so that who uses the bridge has nothing to do with their versions.
package servers
