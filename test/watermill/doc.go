// Package watermill tests adapter/watermill with Watermill's publishers on real servers.
package watermill
