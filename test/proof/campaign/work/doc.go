// Package work is what the fault campaign lets the world do: messages with numbers, the tables that are the truth about them, and the names
// at brokers where they go. Those who write, consume, collect and look after them are the folders below.
package work
