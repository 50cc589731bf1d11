// Package saga runs work that takes several transactions, and undoes what was done when it cannot be finished.
//
// A saga is declared once, each step beside its compensation:
//
//	booking, err := saga.New(store, "book-trip",
//	    saga.Step("hotel", reserveHotel, cancelHotel),
//	    saga.Step("flight", reserveFlight, cancelFlight).Timeout(10*time.Second),
//	    saga.Wait("approval", approve, nil).Within(24*time.Hour),
//	    saga.Step("payment", charge, refund))
//
// Its state lies in the application's database. [Saga.Start] takes the transaction that the application already has, and
// a step runs in one transaction with the record that it was done and the messages that it enqueues. A crash at any point
// takes all of that back or none, so no step takes effect twice. A [Runner] runs what is due; any number of processes can
// have one.
//
// For work that need not survive the process there is [Run], without a database.
package saga
