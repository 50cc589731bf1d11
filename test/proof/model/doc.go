// Package model holds the protocols of Postrider as specifications in TLA+, and has TLC check them: every order in which
// the steps of a few transactions, relays and crashes can happen, not only those that a test happens to see.
//
// Each specification, a .tla file with a .cfg beside it, begins with a table of what is to be done with it:
//
//	check   NAME STATES [Constant=value ...]            all invariants hold, in exactly so many different states
//	nightly NAME STATES [Constant=value ...]            the same with larger constants, for POSTRIDER_LONG
//	revert  NAME INVARIANT [Constant=value ...] text    with this Variant, a wrong one, TLC finds the named invariant broken
//	probe   NAME [Constant=value ...] text              the state that NAME denies is reached
//
// A revert shows that the invariant would notice the mistake. A probe shows that the interesting states are there at all.
package model
