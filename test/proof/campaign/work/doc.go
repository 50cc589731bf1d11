// Package work defines the workload of the fault campaign: the numbered messages, the tables that
// record the truth about them, and their names at the brokers. Producers, consumers, collectors and
// the operator are in the folders below.
package work
