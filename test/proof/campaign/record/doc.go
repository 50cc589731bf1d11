// Package record reads and writes the files of a run of the fault campaign.
//
//	run.json                   what was run: seed, commit, versions, flags; the product's own counts; hashes of the other files
//	timeline.jsonl             faults: when each began, when it was healed, and when the system had recovered
//	samples.jsonl              every few seconds: processes, the database, the backlog
//	intents.gz                 committed messages:   destination key seq id sum poison unnumbered at
//	receipts-DESTINATION.gz    what a destination has, in its own order:   partition offset key seq id sum at
//	effects.gz                 what consumers did, in the order of n:   n consumer destination key seq id
//	dead.gz                    what the product reports as not delivered:   id state actor
//	operations.gz              calls that had to take effect exactly once:   kind client n count acked
//	leases.gz                  samples of the relays' lease rows:   feed shard n member released at until
//	verdict.json               the results of the oracle's checks
//
// Files that end in .gz have one record per line, with tabs between the fields; times in them are
// milliseconds of Unix time. A separate process (an HTTP receiver) writes parts of its own:
// receipts-http.2.gz and receipts-http.3.gz follow receipts-http.gz.
//
// A run that is cut short leaves files that end in the middle of a line or of a compressed block.
// Iterators read them as far as possible and then yield [ErrTruncated].
package record
