// Package tolog moves an application from an outbox table that the classic engine relays to the log of package postgres, while
// everything runs.
//
// From one commit on, a trigger copies each row that is written to the table into the log, in the writer's own transaction, and
// marks it as delivered. So it does not matter any more which processes write where. The log's feed is paused until the rows that
// were there before are delivered: messages of one key keep their order over the cut.
//
//	m, err := tolog.New(pool, tolog.Config{Classic: adopted, Feed: "live"})
//	if err != nil {
//		return err
//	}
//	err = m.Run(ctx, admin.By{Who: "ann", Why: "to the log"}, nil)
package tolog
