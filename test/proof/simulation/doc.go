// Package simulation runs the real relays, thousands of times a minute, in a simulated environment:
// virtual time (testing/synctest), stores and broker in memory, and injected faults of the network,
// the database server, the broker and the operating system. It then compares what was committed with
// what was delivered. In half of the plans the broker can report what has arrived: there, nothing may
// be delivered twice.
//
// A seed determines a plan: sizes, settings, transactions, and which fault happens when. It determines
// neither the order of goroutines that can run at the same instant nor the jitter of the relay's
// backoff. A seed that has failed once may therefore need several runs to fail again:
//
//	POSTRIDER_SEED=4711 POSTRIDER_TIMES=200 go test -run TestRelay -v ./proof/simulation
//
// POSTRIDER_SEEDS is the number of seeds to try. When one fails, rapid looks for a smaller plan that
// fails too.
package simulation
