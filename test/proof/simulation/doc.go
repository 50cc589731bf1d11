// Package simulation runs the real relays, thousands of times a minute, in a world that is made to go wrong: virtual time
// (testing/synctest), the stores and the broker in memory, and between them everything that a network, a database server, a
// broker and an operating system do to a program. What went in is then compared with what came out.
//
// A seed is a plan: sizes, settings, transactions, and what goes wrong when. It does not fix in which order goroutines run
// that could run at the same moment, nor the random part of the relay's pauses. So a seed that has failed once may need some
// repetitions to fail again:
//
//	POSTRIDER_SEED=4711 POSTRIDER_TIMES=200 go test -run TestRelay -v ./simulation
//
// POSTRIDER_SEEDS is how many seeds are tried. When one fails, rapid looks for a smaller plan that fails too.
package simulation
