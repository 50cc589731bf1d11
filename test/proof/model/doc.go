// Package model specifies the protocols of Postrider in TLA+ and checks the specifications with TLC:
// in every order in which the steps of a few transactions, relays and crashes can happen.
//
// Each specification, a .tla file with a .cfg beside it, begins with a table of its runs:
//
//	check   NAME STATES [Constant=value ...]            all invariants hold, in exactly so many distinct states
//	nightly NAME STATES [Constant=value ...]            the same with larger constants, for POSTRIDER_LONG
//	revert  NAME INVARIANT [Constant=value ...] text    with this wrong Variant, TLC finds the named invariant broken
//	probe   NAME [Constant=value ...] text              the state that NAME denies is reached
//
// A revert shows that the invariant catches the mistake. A probe shows that the states of interest
// are reachable.
package model
