// Package record is the files that a run of the fault campaign leaves behind, and how they are written and read.
//
//	run.json                   what was run: seed, commit, versions, flags; the product's own counts; hashes of the other files
//	timeline.jsonl             faults: when each began, was healed, and when the world had recovered from it
//	samples.jsonl              every few seconds: processes, the database, the backlog
//	intents.gz                 committed messages:   destination key seq id sum poison unnumbered at
//	receipts-DESTINATION.gz    what a destination has, in its own order:   partition offset key seq id sum at
//	effects.gz                 what consumers did, in the order of n:   n consumer destination key seq id
//	dead.gz                    what the product did not deliver, in its own words:   id state actor
//	operations.gz              calls that had to take effect once:   kind client n count acked
//	leases.gz                  rows of the relays' ledger as they were seen:   feed shard n member released at until
//	verdict.json               what the oracle made of all that
//
// Files that end in .gz have a line a record, with tabs between the fields; times in them are milliseconds of Unix time. A process of its own
// (an HTTP receiver) writes parts of its own: receipts-http.2.gz, receipts-http.3.gz follow receipts-http.gz.
//
// A run that is cut short leaves files that end in the middle of a line or of a compressed block. They are read as far as they go, and the
// last thing an iterator then yields is [ErrTruncated].
package record
