// Package oracle checks the files of a run of the fault campaign: whether any message was lost,
// invented, reordered, processed twice or changed, and whether the system recovered.
//
// Message numbers are dense for each destination and key. Therefore a loss is a gap, a reorder is a
// smaller number after a larger one, and a duplicate is a number seen before. One bit per message is
// enough to find them in one pass over each file.
//
// A check without data in the files is "not checked", never "ok".
package oracle
