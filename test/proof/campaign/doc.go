// Package campaign is the fault campaign: real servers, real binaries, a workload that numbers every message, faults by a seeded schedule, and
// an oracle that says in the end whether anything was lost, made up, out of order or done twice. The command is cmd/campaign; the test here runs
// a short one.
//
//	record    the files of a run
//	world     servers, relays, proxies between them
//	proxy     our own TCP proxy
//	fault     what goes wrong, and when
//	work      who writes, consumes, collects, and looks after dead letters
//	calls     clients whose calls must take effect once
//	oracle    what the files of a run prove
//	report    a page about runs
package campaign
