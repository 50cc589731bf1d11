// Package failures tests what becomes of messages that fail, at full size and on real servers: nothing is lost, only their
// own keys wait, and operators can put everything right.
package failures
