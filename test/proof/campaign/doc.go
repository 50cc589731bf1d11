// Package campaign is the fault campaign: real servers, real binaries, a workload that numbers every
// message, faults from a seeded schedule, and an oracle that decides at the end whether any message
// was lost, invented, reordered or processed twice. The command is cmd/campaign; the test in this
// package runs a short campaign.
//
//	record    the files of a run
//	world     servers, relays, and the proxies between them
//	proxy     our own TCP proxy
//	fault     the faults and their schedule
//	work      producers, consumers, collectors, and the operator who handles dead letters
//	calls     clients whose calls must take effect exactly once
//	oracle    the checks on the files of a run
//	report    a page about runs
package campaign
