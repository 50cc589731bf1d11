// Package oracle says what the files of a run of the fault campaign prove: whether anything was lost, made up, out of order, done twice or
// changed, and whether the world recovered.
//
// Numbers of messages are dense for each destination and key. So a loss is a gap, a reorder is a step back, a duplicate is a number that
// was there already, and one bit a message is enough to find them, in one pass over each file.
//
// What the files hold no data for is "not checked", never "ok".
package oracle
